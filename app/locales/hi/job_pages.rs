//! Hindi: the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "सबसे पुराना पहले",
    no_events_hint: "ऑडिट ट्रेल में अब इस जॉब की कोई प्रविष्टि नहीं है।",
    details: "विवरण",
    submitted: Phrase("सबमिट हुई: {0}, रिविज़न {1}"),
    resubmitted: Phrase("{0} के बाद फिर से सबमिट हुई"),
    prioritised: Phrase("प्राथमिकता {0} से {1} की गई"),
    offered: Phrase("प्रयास {0} के लिए {1} से पूछा गया"),
    offer_expired: Phrase("{1} ने प्रयास {0} नहीं लिया; जॉब फिर इंतज़ार में है"),
    starting: Phrase("{1} ने प्रयास {0} ले लिया है और ट्रेनर तैयार कर रहा है"),
    running: Phrase("प्रयास {0} का ट्रेनर {1} पर चल रहा है"),
    kept_back: Phrase("{0} तक रोकी गई: संपर्क से बाहर ट्रेनर अब भी चल रहा हो सकता है"),
    requeued: Phrase("प्रयास {0} से संपर्क टूटा, जॉब फिर इंतज़ार में है: {1}"),
    cancelling: Phrase("रद्द की गई; {0} से ट्रेनर रोकने को कहा गया"),
    cancelled: "रद्द",
    completed: Phrase("प्रयास {0} {1} पर पूरा हुआ"),
    failed: Phrase("विफल: {0}"),
    secrets_given: Phrase("प्रयास {0} को सीक्रेट दिए गए: {1}"),
    by_worker: Phrase("वर्कर {0} द्वारा"),
    by_server: "सर्वर द्वारा",
    all_revisions: "सभी रिविज़न",
    stored: "सहेजा गया",
    in_short: "संक्षेप में",
    cancel_title: Phrase("{0} रद्द करें?"),
};
