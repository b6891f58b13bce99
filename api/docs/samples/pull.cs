using System;
using System.IO;
using System.Net.Http;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

static class Program
{
    static readonly HttpClient client = new HttpClient { Timeout = TimeSpan.FromSeconds(45) };
    const string File = "events.cursor";

    // System.Text.Json reads the whole page.
    static readonly Regex next = new Regex("\"next_cursor\":\"([^\"]+)\"}$");

    // Fetch waits for the events after a cursor. null: try again later.
    static async Task<string> Fetch(string cursor)
    {
        var after = cursor == "" ? "" : "&after=" + cursor;
        try
        {
            using (var request = new HttpRequestMessage(HttpMethod.Get, Environment.GetEnvironmentVariable("BASE_URL") + "/events?limit=100&wait=30" + after))
            {
                request.Headers.Add("Authorization", "Bearer " + Environment.GetEnvironmentVariable("TOKEN"));
                using (var response = await client.SendAsync(request))
                {
                    var answer = await response.Content.ReadAsStringAsync();
                    switch ((int)response.StatusCode)
                    {
                        case 410: // the consumer was off for too long
                            Console.Error.WriteLine("events were lost: " + answer);
                            return answer;
                        case 200:
                            return answer;
                        case 401:
                        case 403:
                        case 422:
                            throw new ArgumentException(answer);
                    }
                }
            }
        }
        catch (Exception error) when (error is HttpRequestException || error is TaskCanceledException)
        {
            // refused, broken off or too late
        }
        return null;
    }

    static async Task Run()
    {
        // The file has the cursor behind the events that are processed. Without it the
        // oldest event is the first. Run one consumer for a file.
        var cursor = System.IO.File.Exists(File) ? System.IO.File.ReadAllText(File) : "";
        while (true)
        {
            var page = await Fetch(cursor);
            var found = next.Match(page ?? "");
            if (!found.Success)
            {
                await Task.Delay(5000);
                continue;
            }
            // An event may come twice: process it once by its id.
            Console.WriteLine(page);
            cursor = found.Groups[1].Value;
            System.IO.File.WriteAllText(File + ".new", cursor);
            if (System.IO.File.Exists(File))
            {
                System.IO.File.Replace(File + ".new", File, null);
            }
            else
            {
                System.IO.File.Move(File + ".new", File);
            }
        }
    }

    static void Main()
    {
        Run().GetAwaiter().GetResult();
    }
}
