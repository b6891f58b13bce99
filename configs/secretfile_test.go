package configs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSecretsFromFiles: every secret may stand in a file, which each Load reads.
func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("database", "db-p@ss\n")
	file("redis", "redis-pass")
	file("mail", "mail-pass\r\n")
	file("otp", otpKey+"\n")
	file("factors", otpKey+otpKey+"\n")
	file("hooks", otpKey+otpKey)
	file("link", "geheim\n")
	text := strings.ReplaceAll(`
database: {host: h, user: u, name: d, password_file: FOLDER/database}
redis: {host: h, password_file: FOLDER/redis}
mail: {server: "localhost:25", from: a@example.com, username: u, password_file: FOLDER/mail}
accounts: {otp_key_file: FOLDER/otp, encryption_key_file: FOLDER/factors}
webhooks: {encryption_key_file: FOLDER/hooks}
carriers: [{name: a, links: [{name: b, address: "h:1", system_id: s, password_file: "${CREDENTIALS_DIRECTORY}/link"}]}]
`, "FOLDER", dir)
	path := write(t, text)
	read := func() *Config {
		t.Helper()
		c, err := Load(path, []string{"CREDENTIALS_DIRECTORY=" + dir})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read()
	if problems := c.Check(Roles...); problems != nil {
		t.Fatal(Problems(problems))
	}
	for got, want := range map[Secret]string{c.Database.Password: "db-p@ss", c.Redis.Password: "redis-pass", c.Mail.Password: "mail-pass", c.Accounts.OTPKey: otpKey,
		c.Accounts.EncryptionKey: otpKey + otpKey, c.Carriers[0].Links[0].Password: "geheim"} {
		if string(got) != want {
			t.Errorf("got %q, want %q", string(got), want)
		}
	}
	if c.Webhooks.EncryptionKey != c.Accounts.EncryptionKey {
		t.Error("webhooks.encryption_key_file is not read")
	}
	file("link", "anders\n")
	if c := read(); c.Carriers[0].Links[0].Password != "anders" {
		t.Error("the file is not read again")
	}

	// What is wrong with a file is said for the roles that need it, without its name or text.
	link := func() string { return filepath.Join(dir, "link") }
	for want, spoil := range map[string]func() error{
		"reading the file: no such file or directory":    func() error { _ = os.Remove(link()); return nil },
		"the file is empty":                              func() error { file("link", "\n"); return nil },
		"the file must have one line":                    func() error { file("link", "a\nb\n"); return nil },
		"the file must not have more than 4096 octets":   func() error { file("link", strings.Repeat("x", 4097)); return nil },
		"is not a plain file":                            func() error { _ = os.Remove(link()); return syscall.Mkfifo(link(), 0o600) },
		"must be the whole path of a file, from / on":    nil,
		"the environment variable CREDENTIALS_DIRECTORY": nil,
	} {
		if spoil != nil {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
		}
		env := []string{"CREDENTIALS_DIRECTORY=" + dir}
		switch {
		case strings.HasPrefix(want, "must be"):
			env = []string{"CREDENTIALS_DIRECTORY=secrets"}
		case strings.HasPrefix(want, "the environment"):
			env = nil
		}
		c, err := Load(path, env)
		if err != nil {
			t.Fatal(err)
		}
		if said := Problems(c.Check("dispatcher")).Error(); !strings.Contains(said, "carriers[0].links[0].password_file (line 7): "+want) || strings.Contains(said, dir) {
			t.Errorf("want %s, got %s", want, said)
		}
		if said := c.Check("api"); said != nil {
			t.Errorf("the api does not need it: %v", said)
		}
		_ = os.Remove(link())
	}
	if _, err := Load(write(t, text+"\n"), []string{"CREDENTIALS_DIRECTORY=" + dir, "INTUMWA_REDIS_PASSWORD=x"}); err == nil ||
		!strings.Contains(err.Error(), "redis.password_file (line 3): cannot be given beside password") {
		t.Errorf("two passwords: %v", err)
	}
}
