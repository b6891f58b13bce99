<?php
// With ext-curl or Guzzle it is the same request.

// The key names what is sent, such as an order: with it a message that is tried
// again is sent and paid once.
function send(string $key, array $message): array
{
    for ($attempt = 0; ; $attempt++) {
        $context = stream_context_create(['http' => [
            'method' => 'POST',
            'header' => [
                'Authorization: Bearer ' . getenv('TOKEN'),
                'Content-Type: application/json',
                "Idempotency-Key: $key",
                'Connection: close',
            ],
            'content' => json_encode($message, JSON_THROW_ON_ERROR),
            'timeout' => 15, // seconds without an octet
            'ignore_errors' => true, // refusals have a body too
        ]]);
        $http_response_header = []; // PHP sets it
        $body = @file_get_contents(getenv('BASE_URL') . '/sms', false, $context);
        $headers = function_exists('http_get_last_response_headers') ? http_get_last_response_headers() ?? [] : $http_response_header;
        $status = 0; // no answer: refused, broken off or too late
        if ($body !== false && preg_match('/^HTTP\S* (\d+)/', $headers[0] ?? '', $match)) {
            $status = (int) $match[1];
        }
        $answer = json_decode((string) $body, true);

        if ($status === 200 && is_array($answer)) {
            return $answer;
        }
        $again = in_array($status, [0, 408, 409, 429], true) || $status >= 500;
        if (!$again || $attempt === 4) {
            throw new RuntimeException("$status: " . ($answer['message'] ?? 'no answer'));
        }
        $wait = 2 ** $attempt; // 1, 2, 4, 8 seconds, without Retry-After
        foreach ($headers as $line) {
            if (preg_match('/^Retry-After: *(\d+)/i', $line, $match)) {
                $wait = (int) $match[1];
            }
        }
        sleep($wait);
    }
}

$answer = send('order-1002', [
    'phone_number' => '+25701000001',
    'sender' => 'INTUMWATEST',
    'message' => 'Urakoze!',
]);
echo $answer['id'], "\n";
