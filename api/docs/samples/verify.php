<?php
// $headers has lower-case names, $body is the bytes as they came; $secret is the whole
// whsec_… string. With Apache, FPM or PHP's own server an endpoint calls it so:
//   $genuine = verify($secret, array_change_key_case(getallheaders()), file_get_contents('php://input'), time());
// Elsewhere the headers are in $_SERVER: webhook-id is $_SERVER['HTTP_WEBHOOK_ID'].
function verify(string $secret, array $headers, string $body, int $now): bool
{
    // For a day after the secret was rotated there are two signatures, of the new
    // secret and the old; X-Webhook-Signature is the old one's until then.
    $signatures = explode(' ', $headers['webhook-signature'] ?? '');
    $contract = hash_hmac('sha256', $body, $secret);
    if (count($signatures) === 1 && !hash_equals($contract, $headers['x-webhook-signature'] ?? '')) {
        return false;
    }

    // Standard Webhooks, which also refuses a request that is sent again later.
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $standard = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));

    $matches = array_filter($signatures, fn (string $s): bool => hash_equals($standard, $s));

    return $matches !== []
        && abs($now - (int) $timestamp) <= 300;
}
