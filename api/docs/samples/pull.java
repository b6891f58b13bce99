import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class Pull {
    static final HttpClient client = HttpClient.newHttpClient();
    static final Path file = Path.of("events.cursor");
    // Jackson and Gson read the whole page.
    static final Pattern next = Pattern.compile("\"next_cursor\":\"([^\"]+)\"}$");

    // fetch waits for the events after a cursor. null: try again later.
    static String fetch(String cursor) throws InterruptedException {
        String after = cursor.isEmpty() ? "" : "&after=" + cursor;
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("BASE_URL") + "/events?limit=100&wait=30" + after))
            .timeout(Duration.ofSeconds(45))
            .header("Authorization", "Bearer " + System.getenv("TOKEN"))
            .build();
        try {
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            switch (answer.statusCode()) {
                case 410: // the consumer was off for too long
                    System.err.println("events were lost: " + answer.body());
                    return answer.body();
                case 200:
                    return answer.body();
                case 401, 403, 422:
                    throw new IllegalStateException(answer.statusCode() + ": " + answer.body());
                default:
                    return null;
            }
        } catch (IOException error) {
            return null; // refused, broken off or too late
        }
    }

    public static void main(String[] args) throws Exception {
        // The file has the cursor behind the events that are processed. Without it the
        // oldest event is the first. Run one consumer for a file.
        String cursor = Files.exists(file) ? Files.readString(file) : "";
        while (true) {
            String page = fetch(cursor);
            Matcher found = page == null ? null : next.matcher(page);
            if (found == null || !found.find()) {
                Thread.sleep(5000);
                continue;
            }
            // An event may come twice: process it once by its id.
            System.out.println(page);
            cursor = found.group(1);
            Path fresh = Files.writeString(Path.of(file + ".new"), cursor);
            Files.move(fresh, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        }
    }
}
