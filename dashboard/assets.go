package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"intumwa/dashboard/web"
)

//go:embed assets
var assetFiles embed.FS

// assets are the files that pages load, named by a hash of their content.
type assets struct {
	paths map[string]string // file → path
	files map[string][]byte // path below /assets/ → content
}

var allAssets = sync.OnceValues(func() (assets, error) {
	a := assets{map[string]string{}, map[string][]byte{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return a, err
	}
	for _, entry := range entries {
		content, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(content)
		extension := path.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), extension) + "." + hex.EncodeToString(sum[:6]) + extension
		a.paths[entry.Name()] = "/assets/" + name
		a.files[name] = content
	}
	return a, nil
})

// asset is GET /assets/:name.
func (d *Dashboard) asset(v *web.Visit) error {
	content, known := d.assets.files[v.C.Param("name")]
	if !known {
		return web.ErrNotFound
	}
	v.C.Header("Cache-Control", "public, max-age=31536000, immutable")
	v.C.Data(http.StatusOK, mime.TypeByExtension(path.Ext(v.C.Param("name"))), content)
	return nil
}

// robots is GET /robots.txt: search engines must index nothing.
func (d *Dashboard) robots(v *web.Visit) error {
	v.C.Data(http.StatusOK, gin.MIMEPlain, []byte("User-agent: *\nDisallow: /\n"))
	return nil
}
