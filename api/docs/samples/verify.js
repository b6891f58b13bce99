const crypto = require('node:crypto');

const same = (a, b) => a.length === b.length && crypto.timingSafeEqual(a, b);

// body is a Buffer: the bytes as they came (express.raw({ type: '*/*' })).
// headers has lower-case names; secret is the whole whsec_… string.
function verify(secret, headers, body, now) {
  // For a day after the secret was rotated there are two signatures, of the new
  // secret and the old; X-Webhook-Signature is the old one's until then.
  const signatures = (headers['webhook-signature'] ?? '').split(' ');
  const contract = crypto.createHmac('sha256', secret).update(body).digest('hex');
  if (signatures.length === 1 && !same(Buffer.from(contract), Buffer.from(headers['x-webhook-signature'] ?? ''))) {
    return false;
  }

  // Standard Webhooks, which also refuses a request that is sent again later.
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = headers;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const standard = 'v1,' + crypto.createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');

  return signatures.some((s) => same(Buffer.from(standard), Buffer.from(s)))
    && Math.abs(now - Number(timestamp)) <= 300;
}

module.exports = { verify };
