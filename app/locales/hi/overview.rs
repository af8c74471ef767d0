//! Hindi: the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "अवलोकन",
    disk_full: "सर्वर की डिस्क लगभग भर गई है। जो चल रहा है वह चलता रहेगा, लेकिन नई जॉब तब तक नहीं ली जाएँगी जब तक कोई एडमिन जगह खाली न करे।",
    workers_online: "ऑनलाइन वर्कर",
    workers_of: Phrase("कुल {0} में से"),
    gpus: "GPU",
    gpus_busy: count("{0} उपयोग में", "{0} उपयोग में"),
    running: "जारी",
    waiting: "प्रतीक्षा में",
    failed: "विफल",
    ended_well: count("{0} पूर्ण", "{0} पूर्ण"),
    now_running: "अभी जारी",
    nothing_running: "अभी कुछ नहीं चल रहा है",
    nothing_running_hint: "कोई कॉन्फ़िगरेशन सबमिट करें; वह अगले खाली वर्कर पर शुरू हो जाएगा।",
    recent: "हाल की जॉब",
    all_jobs: "सभी जॉब",
    fleet: "फ़्लीट",
    all_workers: "सभी वर्कर",
    start_title: "आपकी पहली जॉब तक तीन चरण",
    start_intro: "यह सर्वर GPU वाली मशीनों को ट्रेनिंग जॉब सौंपता है। अभी तक कोई मशीन नहीं जुड़ी है।",
    step_worker: "वर्कर बनाएँ",
    step_worker_text: "आपको टोकन और GPU मशीन के लिए कमांड मिलेगी।",
    step_connect: "वहाँ एजेंट शुरू करें",
    step_connect_text: "GPU मशीन पर कमांड पेस्ट करें। एजेंट अपने GPU खोजकर यहाँ संपर्क करेगा।",
    step_job: "क्लाउड में ट्रेन करें",
    step_job_text: "कोई कॉन्फ़िगरेशन चुनकर सबमिट करें। प्रगति, लॉग और फ़ाइलें यहाँ दिखेंगी।",
    done: "पूरा हुआ",
};
