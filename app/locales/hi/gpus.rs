//! Hindi: GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPU",
    intro: "फ़्लीट का हर GPU, अभी की स्थिति में।",
    view: "इस रूप में दिखाएँ",
    as_tiles: "टाइल",
    as_table: "तालिका",
    none_yet: "अभी कोई GPU नहीं",
    none_yet_hint: "जैसे ही GPU वाला कोई वर्कर कनेक्ट होगा, GPU यहाँ दिखेंगे।",
    none_match: "इस स्थिति में कोई GPU नहीं",
    none_match_hint: "अन्य स्थितियों के GPU फ़िल्टर से छिपे हैं।",
    show_all: "सभी GPU दिखाएँ",
    gpu: "GPU",
    state: "स्थिति",
    memory: "मेमोरी",
    memory_of: Phrase("GPU {0} पर इस्तेमाल हो रही मेमोरी"),
    utilisation: "उपयोग",
    utilisation_of: Phrase("GPU {0} का उपयोग"),
    temperature: "तापमान",
    power: "पावर",
    clocks: "क्लॉक",
    read: "रीडिंग",
    no_reading: "रीडिंग नहीं है",
    ecc: Phrase("ECC त्रुटियाँ: {0}"),
    part_of: Phrase("{0} का हिस्सा"),
    unified: "होस्ट की मेमोरी साझा करता है",
    free: "खाली",
    busy: "जॉब में व्यस्त",
    quarantined: "क्वारंटीन में",
    in_use: "दूसरों के उपयोग में",
    not_connected: "कनेक्ट नहीं है",
    withheld: count("{0} GPU अलग रखा गया", "{0} GPU अलग रखे गए"),
    withheld_hint: "इसका एजेंट GPU को जॉब से अलग रखता है: या तो कोई GPU खराब है, या उसे ऐसी प्रोसेस इस्तेमाल कर रही है जो किसी जॉब की नहीं है। कौन-सा GPU और क्यों, यह वर्कर के पेज पर देखें।",
};
