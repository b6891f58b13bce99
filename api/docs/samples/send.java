import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

class Send {
    // One client for all requests: it keeps connections open.
    static final HttpClient client = HttpClient.newHttpClient();

    // The key names what is sent, such as an order: with it a message that is tried
    // again is sent and paid once. message is JSON: Jackson and Gson write and read it.
    static String send(String key, String message) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("BASE_URL") + "/sms"))
            .timeout(Duration.ofSeconds(15))
            .header("Authorization", "Bearer " + System.getenv("TOKEN"))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key)
            .POST(HttpRequest.BodyPublishers.ofString(message))
            .build();
        for (int attempt = 0; ; attempt++) {
            long wait = 1L << attempt; // 1, 2, 4, 8 seconds, without Retry-After
            String failure;
            try {
                HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
                int status = answer.statusCode();
                if (status == 200) {
                    return answer.body();
                }
                failure = status + ": " + answer.body();
                if (status < 500 && status != 408 && status != 409 && status != 429) {
                    throw new IllegalArgumentException(failure);
                }
                wait = answer.headers().firstValueAsLong("Retry-After").orElse(wait);
            } catch (IOException error) {
                failure = "no answer: " + error; // refused, broken off or too late
            }
            if (attempt == 4) {
                throw new IOException(failure);
            }
            Thread.sleep(wait * 1000);
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println(send("order-1006", """
            {"phone_number": "+25701000001", "sender": "INTUMWATEST", "message": "Urakoze!"}
            """));
    }
}
