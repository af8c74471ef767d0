//! Hindi: the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "सबसे नया पहले",
    attempts: "प्रयास",
    of_late: count("पिछले {0} दिन में", "पिछले {0} दिनों में"),
    success: "सफलता दर",
    ended_so: Phrase("{0} पूर्ण, {1} विफल, {2} से संपर्क टूटा"),
    fast_failures: "लगातार तुरंत विफलताएँ",
    fast_failures_hint: "शुरू होने के एक मिनट के भीतर, पिछले 24 घंटों में",
    no_attempts: "अभी तक कोई प्रयास नहीं",
    no_attempts_hint: "इस वर्कर को जो भी प्रयास दिया जाता है, वह अपने परिणाम के साथ यहाँ दिखता है।",
    no_events: "कुछ दर्ज नहीं है",
    no_events_hint: "ऑडिट ट्रेल में अब इस वर्कर की कोई प्रविष्टि नहीं है।",
    said_goodbye: "इसने जाने की सूचना दी।",
    fell_silent: "बहुत देर तक इससे कोई संपर्क नहीं हुआ।",
    server_gone: "जिस सर्वर से यह जुड़ा था, वह अब नहीं है।",
    until: Phrase("{0} तक"),
    withheld: Phrase("रोके गए: {0}"),
    given_back: Phrase("वापस दिए गए: {0}"),
    fit_again: "यह फिर से जॉब ले रहा है।",
    from_host: Phrase("होस्ट {0} से"),
    edit_title: Phrase("{0} में बदलाव करें"),
    reported: "एजेंट के बताए हुए लेबल",
    reported_hint: "ये एजेंट की अपनी सेटिंग से आते हैं, और वहीं बदले जाते हैं।",
    none_reported: "यह कोई लेबल नहीं बताता।",
    overridden: Phrase("मान्य नहीं: आपका लेबल {0} कहता है"),
    not_counted: "मान्य नहीं",
    ignore: "एजेंट के बताए लेबल अनदेखे करें",
    ignore_hint: "तब जॉब इसे सिर्फ़ आपके लेबल से चुनती हैं। उन होस्ट के लिए जिनके संचालक को जॉब नहीं चुननी चाहिए।",
    older: "पुराने एजेंट अस्वीकार करें",
    older_hint: "पुराने प्रोटोकॉल का एजेंट हर काम के लिए वर्कर का टोकन इस्तेमाल करता है और जॉब के प्रस्ताव के साथ HF_TOKEN पाता है।",
    older_agents: "पुराने एजेंट",
    older_refused: "अस्वीकृत",
    ignored_everywhere: "यह सर्वर सभी वर्कर पर एजेंटों के बताए लेबल अनदेखे करता है।",
    overtaken: "इस बीच किसी और ने यह वर्कर बदल दिया है। आपका लिखा नीचे बना हुआ है; जो अभी सहेजा हुआ है, वह उसके साथ दिखाया गया है। फिर से सहेजने पर आपका लिखा उसकी जगह ले लेगा।",
    stored: "अभी सहेजा हुआ",
};
