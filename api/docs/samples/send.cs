using System;
using System.Net.Http;
using System.Text;
using System.Threading.Tasks;

static class Program
{
    // One client for all requests: it keeps connections open.
    static readonly HttpClient client = new HttpClient { Timeout = TimeSpan.FromSeconds(15) };

    // The key names what is sent, such as an order: with it a message that is tried
    // again is sent and paid once. message is JSON: System.Text.Json writes and reads it.
    static async Task<string> Send(string key, string message)
    {
        for (var attempt = 0; ; attempt++)
        {
            var wait = TimeSpan.FromSeconds(1 << attempt); // 1, 2, 4, 8 seconds, without Retry-After
            string failure;
            try
            {
                using (var request = new HttpRequestMessage(HttpMethod.Post, Environment.GetEnvironmentVariable("BASE_URL") + "/sms"))
                {
                    request.Headers.Add("Authorization", "Bearer " + Environment.GetEnvironmentVariable("TOKEN"));
                    request.Headers.Add("Idempotency-Key", key);
                    request.Content = new StringContent(message, Encoding.UTF8, "application/json");
                    using (var response = await client.SendAsync(request))
                    {
                        var answer = await response.Content.ReadAsStringAsync();
                        var status = (int)response.StatusCode;
                        if (status == 200)
                        {
                            return answer;
                        }
                        failure = status + ": " + answer;
                        if (status < 500 && status != 408 && status != 409 && status != 429)
                        {
                            throw new ArgumentException(failure);
                        }
                        wait = response.Headers.RetryAfter?.Delta ?? wait;
                    }
                }
            }
            catch (Exception error) when (error is HttpRequestException || error is TaskCanceledException)
            {
                failure = "no answer: " + error.Message; // refused, broken off or too late
            }
            if (attempt == 4)
            {
                throw new HttpRequestException(failure);
            }
            await Task.Delay(wait);
        }
    }

    static void Main()
    {
        var message = "{\"phone_number\": \"+25701000001\", \"sender\": \"INTUMWATEST\", \"message\": \"Urakoze!\"}";
        Console.WriteLine(Send("order-1007", message).GetAwaiter().GetResult());
    }
}
