package ebmssim

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	layout  = "2006-01-02 15:04:05"
	missing = "Veuillez fournir tous les champs obligatoires. Champ(s) manquant(s): %s"
)

var burundi = time.FixedZone("CAT", 2*60*60)

// text returns a field's value as text; "" if it is absent or null.
func text(body map[string]any, key string) string {
	switch value := body[key].(type) {
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

var required = []string{"invoice_number", "invoice_date", "invoice_type", "tp_type", "tp_name", "tp_TIN",
	"tp_trade_number", "tp_phone_number", "tp_address_commune", "tp_address_quartier", "vat_taxpayer", "ct_taxpayer",
	"tl_taxpayer", "tp_fiscal_center", "tp_activity_sector", "tp_legal_form", "payment_type", "customer_name",
	"invoice_identifier"}

var longest = map[string][2]int{"invoice_number": {30, 30}, "invoice_identifier": {90, 90}, "invoice_ref": {30, 30},
	"cn_motif": {500, 100}, "tp_name": {100, 100}, "tp_TIN": {30, 15}, "tp_trade_number": {30, 20},
	"tp_postal_number": {20, 20}, "tp_phone_number": {20, 20}, "tp_address_province": {50, 50},
	"tp_address_commune": {50, 50}, "tp_address_quartier": {50, 50}, "tp_address_avenue": {50, 50},
	"tp_address_rue": {50, 50}, "tp_address_number": {10, 10}, "tp_activity_sector": {250, 20}, "tp_legal_form": {50, 50},
	"customer_name": {100, 100}, "customer_TIN": {30, 15}, "customer_address": {100, 100}}

var enums = map[string][]string{"tp_type": {"1", "2"}, "vat_taxpayer": {"0", "1"}, "ct_taxpayer": {"0", "1"},
	"tl_taxpayer": {"0", "1"}, "tp_fiscal_center": {"DGC", "DMC", "DPMC"}, "payment_type": {"1", "2", "3", "4"},
	"invoice_type": {"FN", "FA", "RC", "RHF"}, "invoice_currency": {"BIF", "USD", "EUR", ""},
	"vat_customer_payer": {"0", "1", ""}}

// wrong returns why an invoice is refused; "" if it is right. The caller holds mu.
func (s *Sim) wrong(f Faults, body map[string]any) string {
	var absent []string
	for _, key := range required {
		if text(body, key) == "" {
			absent = append(absent, key)
		}
	}
	items, _ := body["invoice_items"].([]any)
	if len(items) == 0 {
		absent = append(absent, "invoice_items")
	}
	if len(absent) > 0 {
		return fmt.Sprintf(missing, strings.Join(absent, ", "))
	}
	for key, value := range body {
		if value == nil {
			return fmt.Sprintf("Le champ %s ne peut pas être nul.", key)
		}
	}
	for key, most := range longest {
		limit := most[0]
		if f.StrictLengths {
			limit = most[1]
		}
		if utf8.RuneCountInString(text(body, key)) > limit {
			return fmt.Sprintf("Le champ %s ne doit pas dépasser %d caractères.", key, limit)
		}
	}
	for key, words := range enums {
		if !slices.Contains(words, text(body, key)) {
			return fmt.Sprintf("La valeur du champ %s n'est pas valide.", key)
		}
	}
	number, kind := text(body, "invoice_number"), text(body, "invoice_type")
	at, err := time.ParseInLocation(layout, text(body, "invoice_date"), burundi)
	switch {
	case err != nil:
		return "Le format de la date de facturation n'est pas valide."
	case at.After(time.Now().Add(-f.ClockBehind)):
		return "La date de facturation fournie est supérieur à la date actuelle."
	case text(body, "invoice_identifier") != strings.Join([]string{text(body, "tp_TIN"), s.opts.Username,
		at.Format("20060102150405"), number}, "/"):
		return "L'identifiant de la facture n'est pas valide."
	case f.NoFA && kind == "FA":
		return "Le type de la facture n'est pas valide. Valeurs possibles: FN, RC, RHF."
	case slices.Contains(f.UnknownTINs, text(body, "customer_TIN")):
		return "Le NIF du client n'est pas connu par l'OBR: " + text(body, "customer_TIN")
	}
	total := 0.0
	for i, item := range items {
		line, _ := item.(map[string]any)
		sum, why := wrongLine(f, line)
		if why != "" {
			return fmt.Sprintf("Pour la ligne numéro: %d, %s", i+1, why)
		}
		total += sum
	}
	if kind != "FA" {
		return ""
	}
	original := slices.IndexFunc(s.invoices, func(v Invoice) bool {
		return v.Kind == "FN" && v.Number == text(body, "invoice_ref")
	})
	switch {
	case text(body, "cn_motif") == "":
		return fmt.Sprintf(missing, "cn_motif")
	case original < 0:
		return "La référence de la facture d'origine est inconnue."
	}
	for _, item := range s.invoices[original].Body["invoice_items"].([]any) { //nolint:forcetypeassert // as it was taken
		sum, _ := wrongLine(f, item.(map[string]any)) //nolint:forcetypeassert // as it was taken
		total -= sum
	}
	if total > 0.5 {
		return "Le montant de la facture d'avoir dépasse celui de la facture d'origine."
	}
	return ""
}

func wrongLine(f Faults, line map[string]any) (total float64, why string) {
	if text(line, "item_designation") == "" || utf8.RuneCountInString(text(line, "item_designation")) > 500 {
		return 0, "la désignation n'est pas valide."
	}
	amount := map[string]float64{}
	for _, key := range []string{"item_quantity", "item_price", "item_ct", "item_tl", "item_ott_tax", "item_tsce_tax",
		"item_price_nvat", "vat", "item_price_wvat", "item_total_amount"} {
		_, isText := line[key].(string)
		_, isNumber := line[key].(float64)
		if f.Amounts == "string" && isNumber || f.Amounts == "number" && isText {
			return 0, "le type du champ " + key + " n'est pas valide."
		}
		n, err := strconv.ParseFloat(text(line, key), 64)
		if err != nil {
			return 0, "le champ " + key + " n'est pas un nombre."
		}
		amount[key] = n
	}
	if f.CheckSums {
		net := amount["item_price"]*amount["item_quantity"] + amount["item_ct"] + amount["item_tsce_tax"]
		gross := amount["item_price_nvat"] + amount["vat"]
		if f.OTTAfterVAT {
			gross += amount["item_ott_tax"]
		} else {
			net += amount["item_ott_tax"]
		}
		for _, pair := range [][2]float64{{net, amount["item_price_nvat"]}, {gross, amount["item_price_wvat"]},
			{amount["item_price_wvat"] + amount["item_tl"], amount["item_total_amount"]}} {
			if math.Abs(pair[0]-pair[1]) > 1 {
				return 0, "les montants ne correspondent pas."
			}
		}
	}
	return amount["item_total_amount"], ""
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{"json": func(v any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>eBMS</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}
pre{white-space:pre-wrap;font-size:.8rem}</style></head>
<body><h1>eBMS: received by the OBR</h1>{{if .}}<table><tr><th>OBR's number<th>number<th>kind<th>at<th>identifier</tr>
{{range .}}<tr><td>{{.Registered}}<td>{{.Number}}<td>{{.Kind}}{{with .Cancelled}} cancelled: {{.}}{{end}}
<td>{{.At.Format "15:04:05"}}<td><details><summary>{{.Identifier}}</summary><pre>{{json .Body}}</pre></details></tr>
{{end}}</table>{{else}}<p>Nothing so far.</p>{{end}}</body></html>
`))
