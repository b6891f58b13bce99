<?php
// With ext-curl or Guzzle it is the same request.
$context = stream_context_create(['http' => [
    'method' => 'POST',
    'header' => [
        'Authorization: Bearer ' . getenv('TOKEN'),
        'Content-Type: application/json',
        'Idempotency-Key: order-1002',
    ],
    'content' => json_encode([
        'phone_number' => '+25761234500',
        'sender' => 'INTUMWATEST',
        'message' => 'Urakoze!',
    ]),
    'ignore_errors' => true, // refusals have a body too
]]);

$answer = json_decode(file_get_contents(getenv('BASE_URL') . '/sms', false, $context), true);
$status = (int) explode(' ', $http_response_header[0])[1];

if ($status !== 200) {
    throw new RuntimeException("$status: {$answer['message']}");
}
echo $answer['id'], "\n";
