import base64
import hashlib
import hmac


# body is the bytes as they came (Flask: request.get_data()); secret is the whole
# whsec_… string. headers has lower-case names, or ignores their case (Flask: request.headers).
def verify(secret: str, headers: dict, body: bytes, now: float) -> bool:
    def header(name: str) -> bytes:
        return headers.get(name, "").encode(errors="replace")

    # For a day after the secret was rotated there are two signatures, of the new
    # secret and the old; X-Webhook-Signature is the old one's until then.
    signatures = header("webhook-signature").split(b" ")
    contract = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    if len(signatures) == 1 and not hmac.compare_digest(contract, header("x-webhook-signature")):
        return False

    # Standard Webhooks, which also refuses a request that is sent again later.
    timestamp = header("webhook-timestamp")
    signed = header("webhook-id") + b"." + timestamp + b"." + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    standard = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())

    return any(hmac.compare_digest(standard, s) for s in signatures) and abs(now - int(timestamp)) <= 300
