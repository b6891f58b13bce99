import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

class Webhook {
    // body is the bytes as they came; secret is the whole whsec_… string. headers has
    // lower-case names; now is Unix seconds.
    static boolean verify(String secret, Map<String, String> headers, byte[] body, long now) throws Exception {
        // For a day after the secret was rotated there are two signatures, of the new
        // secret and the old; X-Webhook-Signature is the old one's until then.
        String[] signatures = headers.getOrDefault("webhook-signature", "").split(" ");
        String contract = HexFormat.of().formatHex(hmac(bytes(secret), body));
        if (signatures.length == 1 && !same(contract, headers.getOrDefault("x-webhook-signature", ""))) {
            return false;
        }

        // Standard Webhooks, which also refuses a request that is sent again later.
        String timestamp = headers.getOrDefault("webhook-timestamp", "");
        byte[] key = Base64.getDecoder().decode(secret.substring("whsec_".length()));
        byte[] signed = hmac(key, bytes(headers.getOrDefault("webhook-id", "") + "." + timestamp + "."), body);
        String standard = "v1," + Base64.getEncoder().encodeToString(signed);

        return Arrays.stream(signatures).anyMatch(s -> same(standard, s))
            && Math.abs(now - Long.parseLong(timestamp)) <= 300;
    }

    static byte[] hmac(byte[] key, byte[]... parts) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        for (byte[] part : parts) {
            mac.update(part);
        }
        return mac.doFinal();
    }

    static boolean same(String a, String b) { // in constant time
        return MessageDigest.isEqual(bytes(a), bytes(b));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
