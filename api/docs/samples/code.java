import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class Code {
    // One client for all requests: it keeps connections open.
    static final HttpClient client = HttpClient.newHttpClient();

    // See above for when to try again.
    static HttpResponse<String> call(String path, String key, String body) throws Exception {
        return client.send(HttpRequest.newBuilder(URI.create(System.getenv("BASE_URL") + "/verifications" + path))
            .timeout(Duration.ofSeconds(15))
            .header("Authorization", "Bearer " + System.getenv("TOKEN"))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key)
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build(), HttpResponse.BodyHandlers.ofString());
    }

    // Jackson and Gson read JSON; here a text of the answer is enough.
    static String text(HttpResponse<String> answer, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*\"([^\"]*)\"").matcher(answer.body());
        return found.find() ? found.group(1) : "";
    }

    // Sends a code. Keep the verification's id in the person's session. If you make the key
    // with the form that you show, a double click sends one code.
    static String start(String number) throws Exception {
        HttpResponse<String> answer = call("", UUID.randomUUID().toString(), "{\"phone_number\": \"" + number + "\", \"sender\": \"INTUMWATEST\"}");
        if (answer.statusCode() != 200) {
            throw new IllegalArgumentException(answer.statusCode() + ": " + answer.body());
        }
        return text(answer, "id");
    }

    // Returns approved, or why the code is not accepted. Accept only digits from the person.
    static String check(String id, String code) throws Exception {
        HttpResponse<String> answer = call("/" + id + "/check", UUID.randomUUID().toString(), "{\"code\": \"" + code + "\"}");
        return text(answer, answer.statusCode() == 200 ? "status" : "message");
    }

    public static void main(String[] args) throws Exception {
        System.out.println(args[0].equals("start") ? start(args[1]) : check(args[1], args[2]));
    }
}
