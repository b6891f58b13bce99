package api

// Operations on contacts and groups.
const (
	onContactLists operations = "listContacts listGroups"
	onContactReads            = onContactLists + " getContact getGroup"
	onContactOnes  operations = "getContact changeContact deleteContact getGroup changeGroup deleteGroup"
	onContactBody  operations = "createContact changeContact putContacts createGroup changeGroup"
	onContactAsked            = onContactReads + " deleteContact deleteGroup"
	onContacts                = onContactBody + " " + onContactAsked
	onContactEdits operations = "createContact changeContact"
)

// Refusals of contacts and groups.
var (
	bookFull = newRefusal(400, "contacts_full", "The company has 500,000 contacts, the most that are kept.",
		"createContact putContacts", retryFixed,
		words{"There is no room for another one. Nothing was changed.", "Il n’y a plus de place. Rien n’a été modifié."},
		words{"Delete contacts that you do not need.", "Supprimez les contacts dont vous n’avez pas besoin."})
	groupsFull = newRefusal(400, "groups_full", "The company has 1,000 groups, the most that are kept.", "createGroup",
		retryFixed,
		words{"There is no room for another one.", "Il n’y a plus de place."},
		words{"Delete groups that you do not need.", "Supprimez les groupes dont vous n’avez pas besoin."})
	groupUsed = newRefusal(400, "group_in_use", "A keyword (K to N) joins or leaves the group.", "deleteGroup",
		retryFixed,
		words{"People who send the keyword join or leave the group, so it cannot be deleted.",
			"Un mot-clé inscrit des personnes dans le groupe ou les en retire : il ne peut pas être supprimé."},
		words{"Ask us to remove the keyword first.", "Demandez-nous d’abord de retirer le mot-clé."})

	ofContact  = newOfContacts("", onContactEdits)
	ofContacts = newOfContacts("contacts.N.", "putContacts")

	contactsEmpty = newInvalid("contacts_empty", "contacts", "The contacts field must contain at least one item.",
		"putContacts",
		words{"contacts is missing, empty or not a list.", "contacts est absent ou vide, ou n’est pas une liste."},
		words{"Give 1 to 1,000 contacts.", "Donnez de 1 à 1 000 contacts."})
	contactsMany = newInvalid("contacts_too_many", "contacts", "The contacts field must not contain more than 1000 items.",
		"putContacts",
		words{"There are too many.", "Il y en a trop."},
		words{"Send several requests.", "Envoyez plusieurs requêtes."})
	membersMany = newInvalid("memberships_too_many", "contacts",
		"The contacts must not have more than 20000 memberships of groups together.", "putContacts",
		words{"The lists of groups are too long together.", "Les listes de groupes sont trop longues au total."},
		words{"Send several requests.", "Envoyez plusieurs requêtes."})
	contactsTwice = newInvalidItem("phone_number_twice", "contacts.N.phone_number", " field is that of an earlier item.",
		"putContacts",
		words{"Two items have the same number.", "Deux éléments ont le même numéro."},
		words{"Give each number once.", "Donnez chaque numéro une seule fois."})
	groupNameInvalid = newInvalid("name_invalid", "name",
		"The name must be 1-100 printable characters, without comma, semicolon or bar.", "createGroup changeGroup",
		words{"It is missing, too long, not a string, or has a character that is not allowed.",
			"Il est absent ou trop long, n’est pas une chaîne, ou contient un caractère interdit."},
		words{"Give another name.", "Donnez un autre nom."})
	groupNameTaken = newInvalid("name_taken", "name", "The name is that of another group.", "createGroup changeGroup",
		words{"Case and accents do not count.", "La casse et les accents ne comptent pas."},
		words{"Use that group, or give another name.", "Utilisez ce groupe, ou donnez un autre nom."})
	groupInvalid = newInvalid("group_invalid", "group", "The group must be the id of a group.",
		"sendTemplate listContacts",
		words{"It is not a whole number above 0.", "Ce n’est pas un nombre entier supérieur à 0."},
		words{"Give the id of GET /v1/groups.", "Donnez l’id que renvoie GET /v1/groups."})
	groupToo = newInvalid("group_and_recipients", "group", "The group must not be given together with recipients.",
		"sendTemplate",
		words{"It is not clear who is meant.", "On ne sait pas qui est visé."},
		words{"Give one of the two.", "Donnez l’un des deux."})
	groupUnknown = newInvalid("group_unknown", "group", "The group does not exist.", "sendTemplate",
		words{"Your company has no group with this id.", "Votre entreprise n’a pas de groupe avec cet id."},
		words{"Give the id of GET /v1/groups.", "Donnez l’id que renvoie GET /v1/groups."})
	groupEmpty = newInvalid("group_empty", "group", "The group has no members.", "sendTemplate",
		words{"Nobody would get the message.", "Personne ne recevrait le message."},
		words{"Add contacts to the group.", "Ajoutez des contacts au groupe."})
	groupLarge = newInvalid("group_too_large", "group", "The group must not have more than 500 members.", "sendTemplate",
		words{"A request has at most 500 recipients.", "Une requête a au plus 500 destinataires."},
		words{"Send a campaign in the dashboard, or several batches.",
			"Envoyez une campagne depuis le tableau de bord, ou plusieurs lots."})
)

// refusalsOfContact are the refusals of the fields of a contact.
type refusalsOfContact struct {
	numberRequired, numberInvalid, taken, name, language, fields, field, groups, consentSource, consentRequired,
	consentedAt *refusal
}

// newOfContacts is for a contact alone, or for those of a list.
func newOfContacts(list string, on operations) refusalsOfContact {
	of := refusalsOfContact{
		numberRequired: numberRequired, numberInvalid: numberInvalid,
		name: newInvalidItem("name_invalid", list+"name", " field must be at most 200 printable characters.", on,
			words{"It is too long, not a string, or has an invisible character.",
				"Il est trop long, n’est pas une chaîne, ou contient un caractère invisible."},
			words{"Shorten it; null removes it.", "Raccourcissez-le ; null l’efface."}),
		language: newInvalidItem("language_invalid", list+"language", " field must be rn, fr, en or sw.", on,
			words{"It is another language, or not a string.", "C’est une autre langue, ou ce n’est pas une chaîne."},
			words{"Give one of the four; null removes it.", "Donnez l’une des quatre ; null l’efface."}),
		fields: newInvalidItem("fields_invalid", list+"fields",
			" field must be an object, and a company's contacts have at most 20 different fields.", on,
			words{"It is not an object, or there would be a twenty-first name.",
				"Ce n’est pas un objet, ou il y aurait un vingt et unième nom."},
			words{"Use the names that other contacts have.", "Utilisez les noms qu’ont d’autres contacts."}),
		field: newInvalidItem("field_invalid", list+"fields.K",
			" field must be a string of at most 255 printable characters, with a name of its own of at most 40.", on,
			words{"The value is too long or not a string, or the name is empty, too long, given twice, or that of " +
				"something else.",
				"La valeur est trop longue ou n’est pas une chaîne, ou le nom est vide, trop long, donné deux fois ou réservé."},
			words{"Names are kept in lower case, without accents, with underscores; null removes a field.",
				"Les noms sont enregistrés en minuscules, sans accents, avec des tirets bas ; null efface un champ."}),
		groups: newInvalidItem("groups_invalid", list+"groups",
			" field must be a list of ids of the company's own groups.", on,
			words{"It is not a list of ids, or your company has no such group.",
				"Ce n’est pas une liste d’id, ou votre entreprise n’a pas ce groupe."},
			words{"Give ids of GET /v1/groups; [] for none.", "Donnez les id que renvoie GET /v1/groups ; [] pour aucun."}),
		consentSource: newInvalidItem("consent_source_invalid", list+"consent_source",
			" field must be at most 200 printable characters.", on,
			words{"It is too long, not a string, or has an invisible character.",
				"Elle est trop longue, n’est pas une chaîne, ou contient un caractère invisible."},
			words{"For example paper form 2026; null removes the consent.",
				"Par exemple formulaire papier 2026 ; null efface le consentement."}),
		consentRequired: newInvalidItem("consent_source_required", list+"consent_source",
			" field is required with consented_at.", on,
			words{"It is missing, null or blank, and consented_at has a value.",
				"Elle est absente, null ou vide, alors que consented_at a une valeur."},
			words{"Give both, or leave consented_at out.", "Donnez les deux, ou omettez consented_at."}),
		consentedAt: newInvalidItem("consented_at_invalid", list+"consented_at",
			" field must be a date and time such as 2026-03-01T10:00:00+02:00, from 2000 on, not in the future.", on,
			words{"It is not a time, is before the year 2000, or is still to come.",
				"Ce n’est pas une date valide, elle est antérieure à l’an 2000, ou elle est à venir."},
			words{"Give an RFC 3339 time, or a day in Burundi.", "Donnez une date RFC 3339, ou un jour au Burundi."}),
	}
	if list == "" {
		of.taken = newInvalid("phone_number_taken", "phone_number", "The phone number is that of another contact.", on,
			words{"Your company has a contact with this number.", "Votre entreprise a déjà un contact avec ce numéro."},
			words{"Change that contact, or use POST /v1/contacts/bulk.",
				"Modifiez ce contact, ou utilisez POST /v1/contacts/bulk."})
		return of
	}
	items := newOfEntries("contacts", on)
	of.numberRequired, of.numberInvalid = items.numberRequired, items.numberInvalid
	return of
}
