using System;
using System.Net.Http;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

static class Program
{
    // One client for all requests: it keeps connections open.
    static readonly HttpClient client = new HttpClient { Timeout = TimeSpan.FromSeconds(15) };

    // The answer's status and body. See above for when to try again.
    static async Task<(int, string)> Call(string path, string body)
    {
        using (var request = new HttpRequestMessage(HttpMethod.Post, Environment.GetEnvironmentVariable("BASE_URL") + "/verifications" + path))
        {
            request.Headers.Add("Authorization", "Bearer " + Environment.GetEnvironmentVariable("TOKEN"));
            request.Headers.Add("Idempotency-Key", Guid.NewGuid().ToString());
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
            using (var response = await client.SendAsync(request))
            {
                var answer = await response.Content.ReadAsStringAsync();
                return ((int)response.StatusCode, answer);
            }
        }
    }

    // System.Text.Json reads JSON; here a text of the answer is enough.
    static string Text(string answer, string name) => Regex.Match(answer, "\"" + name + "\":\\s*\"([^\"]*)\"").Groups[1].Value;

    // Sends a code. Keep the verification's id in the person's session. If you make the key
    // with the form that you show, a double click sends one code.
    static async Task<string> Start(string number)
    {
        var (status, answer) = await Call("", "{\"phone_number\": \"" + number + "\", \"sender\": \"INTUMWATEST\"}");
        return status == 200 ? Text(answer, "id") : throw new ArgumentException(status + ": " + answer);
    }

    // Returns approved, or why the code is not accepted. Accept only digits from the person.
    static async Task<string> Check(string id, string code)
    {
        var (status, answer) = await Call("/" + id + "/check", "{\"code\": \"" + code + "\"}");
        return Text(answer, status == 200 ? "status" : "message");
    }

    static void Main(string[] args)
    {
        Console.WriteLine((args[0] == "start" ? Start(args[1]) : Check(args[1], args[2])).GetAwaiter().GetResult());
    }
}
