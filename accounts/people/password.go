package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/crypto/argon2"

	"intumwa/accounts"
	"intumwa/accounts/letter"
)

// argon2id with OWASP's parameters. One hash takes argonMemory KiB, so only concurrentHashes run at once: a flood of
// logins queues instead of exhausting the memory.
const (
	argonMemory      = 19456 // KiB
	argonTime        = 2
	argonThreads     = 1
	argonSalt        = 16
	argonKey         = 32
	concurrentHashes = 4

	maxPassword = 1024 // bytes
)

var base64raw = base64.RawStdEncoding.Strict()

// phc is a password hash in the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$salt$key. The library for it,
// alexedwards/argon2id, has had no release since 2023.
type phc struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

func (h phc) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		base64raw.EncodeToString(h.salt), base64raw.EncodeToString(h.key))
}

func parsePHC(text string) (phc, error) {
	var h phc
	fields := strings.Split(text, "$")
	if len(fields) != 6 || fields[0] != "" || fields[1] != "argon2id" ||
		fields[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return phc{}, fmt.Errorf("not an argon2id hash of version %d", argon2.Version)
	}
	if _, err := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil {
		return phc{}, fmt.Errorf("reading the hash's parameters: %w", err)
	}
	var err error
	if h.salt, err = base64raw.DecodeString(fields[4]); err != nil {
		return phc{}, fmt.Errorf("reading the hash's salt: %w", err)
	}
	if h.key, err = base64raw.DecodeString(fields[5]); err != nil {
		return phc{}, fmt.Errorf("reading the hash's key: %w", err)
	}
	if h.time == 0 || h.threads == 0 || len(h.key) == 0 {
		return phc{}, fmt.Errorf("the hash's parameters are not usable")
	}
	return h, nil
}

func newPHC(password string) phc {
	h := phc{memory: argonMemory, time: argonTime, threads: argonThreads, salt: make([]byte, argonSalt)}
	rand.Read(h.salt)
	h.key = argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, argonKey)
	return h
}

func (h phc) matches(password string) bool {
	key := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1
}

// MinPassword is the shortest password that a person may choose, in characters.
const MinPassword = 10

// hashing has one slot for each concurrent hash of this process.
var hashing = make(chan struct{}, concurrentHashes)

// hashNewPassword checks and hashes a person's choice.
func hashNewPassword(ctx context.Context, password string) (string, error) {
	if utf8.RuneCountInString(password) < MinPassword {
		return "", accounts.Errorf(accounts.ErrInvalid, "the password is shorter than %d characters", MinPassword)
	}
	return hashPassword(ctx, password)
}

// hashPassword waits for a free slot and hashes.
func hashPassword(ctx context.Context, password string) (string, error) {
	switch {
	case password == "":
		return "", accounts.Errorf(accounts.ErrInvalid, "the password is empty")
	case len(password) > maxPassword:
		return "", accounts.Errorf(accounts.ErrInvalid, "the password is longer than %d bytes", maxPassword)
	}
	if err := takeHashingSlot(ctx); err != nil {
		return "", err
	}
	defer releaseHashingSlot()
	return newPHC(password).String(), nil
}

// nobodysPassword returns a hash that no password has: its key is random. It costs no hashing, and comparing it takes
// as long as with any other.
func nobodysPassword() string {
	h := phc{memory: argonMemory, time: argonTime, threads: argonThreads, salt: make([]byte, argonSalt),
		key: make([]byte, argonKey)}
	rand.Read(h.salt)
	rand.Read(h.key)
	return h.String()
}

func takeHashingSlot(ctx context.Context) error {
	select {
	case hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting to hash a password: %w", ctx.Err())
	}
}

func releaseHashingSlot() { <-hashing }

// decoyUser is compared when there is no such user: the response time must not show it.
var decoyUser = phc{
	memory: argonMemory, time: argonTime, threads: argonThreads,
	salt: make([]byte, argonSalt), key: make([]byte, argonKey),
}

// Login returns the user with that email and password; [accounts.ErrUnauthenticated] when there is none.
func (a *SignIn) Login(ctx context.Context, email, password string) (User, error) {
	if len(password) > maxPassword {
		return User{}, accounts.ErrUnauthenticated
	}
	var (
		u      User
		stored string
	)
	err := a.pool.QueryRow(ctx, `select `+userColumns+`, password_hash from users where email = $1`,
		accounts.FoldEmail(email)).
		Scan(&u.ID, &u.Email, &u.Name, &u.Administrator, &u.CreatedAt, &u.Language, &u.Disabled, &u.Company, &u.Role, &stored)
	hash, known := decoyUser, err == nil && !u.Disabled
	switch {
	case err == nil:
		if hash, err = parsePHC(stored); err != nil {
			return User{}, fmt.Errorf("checking the password of user %d: %w", u.ID, err)
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return User{}, fmt.Errorf("looking a user up: %w", err)
	}
	if err := takeHashingSlot(ctx); err != nil {
		return User{}, err
	}
	defer releaseHashingSlot()
	if !hash.matches(password) || !known {
		return User{}, accounts.ErrUnauthenticated
	}
	return u, nil
}

// WarnOfTries stores a letter about wrong passwords or codes to the user with that email. If there is none, it stores
// one to nobody: its duration does not show which.
func (a *SignIn) WarnOfTries(ctx context.Context, email string) error {
	_, err := accounts.Exec(ctx, a.pool, "writing a letter about tries", letter.Insert+` select '`+letter.Tries+`', 0,
		coalesce((select id from users where email = $1), -1 - abs(hashtext($1)::bigint)), null `+letter.Replace,
		accounts.FoldEmail(email))
	return err
}
