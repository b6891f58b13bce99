using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

static class Webhook
{
    // body is the bytes as they came; secret is the whole whsec_… string. headers ignores
    // the case of names (StringComparer.OrdinalIgnoreCase); now is Unix seconds.
    public static bool Verify(string secret, IReadOnlyDictionary<string, string> headers, byte[] body, long now)
    {
        Func<string, string> header = name => headers.TryGetValue(name, out var text) ? text : "";

        // For a day after the secret was rotated there are two signatures, of the new
        // secret and the old; X-Webhook-Signature is the old one's until then.
        var signatures = header("webhook-signature").Split(' ');
        var contract = BitConverter.ToString(Hmac(Bytes(secret), body)).Replace("-", "").ToLowerInvariant();
        if (signatures.Length == 1 && !Same(contract, header("X-Webhook-Signature")))
        {
            return false;
        }

        // Standard Webhooks, which also refuses a request that is sent again later.
        var timestamp = header("webhook-timestamp");
        var key = Convert.FromBase64String(secret.Substring("whsec_".Length));
        var signed = Bytes(header("webhook-id") + "." + timestamp + ".").Concat(body).ToArray();
        var standard = "v1," + Convert.ToBase64String(Hmac(key, signed));

        return signatures.Any(s => Same(standard, s)) && Math.Abs(now - long.Parse(timestamp)) <= 300;
    }

    static byte[] Hmac(byte[] key, byte[] data)
    {
        using (var hmac = new HMACSHA256(key))
        {
            return hmac.ComputeHash(data);
        }
    }

    static bool Same(string a, string b) => CryptographicOperations.FixedTimeEquals(Bytes(a), Bytes(b));

    static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);
}
