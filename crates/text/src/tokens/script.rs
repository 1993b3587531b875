//! The cost of letters beyond ASCII.

use super::Cost;

/// A group of scripts with similar costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Devanagari,
    Indic,
    Thai,
    Kana,
    Han,
    Hangul,
    Other,
}

impl Script {
    pub(super) fn from_char(c: char) -> Script {
        match c {
            '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
            '\u{370}'..='\u{3ff}' => Script::Greek,
            '\u{400}'..='\u{52f}' => Script::Cyrillic,
            '\u{590}'..='\u{5ff}' => Script::Hebrew,
            '\u{600}'..='\u{6ff}' => Script::Arabic,
            '\u{900}'..='\u{97f}' => Script::Devanagari,
            '\u{980}'..='\u{dff}' => Script::Indic,
            '\u{e00}'..='\u{e7f}' => Script::Thai,
            '\u{3041}'..='\u{30ff}' => Script::Kana,
            '\u{3005}' | '\u{4e00}'..='\u{9fff}' => Script::Han,
            '\u{ac00}'..='\u{d7a3}' => Script::Hangul,
            _ => Script::Other,
        }
    }

    /// Returns the base cost of a run of the script, and the cost of this character. In Japanese, fewer tokens
    /// contain several Chinese characters than in Chinese.
    pub(super) fn rate(self, c: char, japanese: bool) -> (Cost, Cost) {
        match self {
            Script::Latin if c.is_ascii() => (60, 13),
            Script::Latin => (60, 42),
            Script::Greek => (40, 40),
            // Letters that Russian does not have indicate languages with fewer tokens.
            Script::Cyrillic if !matches!(c, 'А'..='я' | 'ё') => (62, 75),
            Script::Cyrillic => (62, 21),
            Script::Hebrew => (50, 36),
            Script::Arabic => (52, 26),
            Script::Devanagari => (35, 35),
            Script::Indic => (35, 43),
            Script::Thai => (35, 40),
            Script::Kana => (13, 59),
            Script::Han if japanese => (13, 92),
            Script::Han => (40, 69),
            Script::Hangul if has_rare_final(c) => (74, 85),
            Script::Hangul => (74, 54),
            Script::Other => (0, 200),
        }
    }
}

/// Returns whether a Korean syllable ends with a rare final consonant.
fn has_rare_final(c: char) -> bool {
    let finals = u32::from(c).saturating_sub(0xac00) % 28;
    !matches!(finals, 0 | 1 | 4 | 8 | 16 | 17 | 19..=21)
}

/// Returns whether a letter has an accent of a language with many tokens.
pub(super) fn has_common_accent(c: char) -> bool {
    "áâãäçéêíñóôõöúüßÁÂÃÄÇÉÊÍÑÓÔÕÖÚÜ".contains(c)
}

/// Returns whether a character is used only in traditional Chinese.
pub(super) fn is_traditional(c: char) -> bool {
    TRADITIONAL.binary_search(&c).is_ok()
}

/// Frequent characters that differ in simplified Chinese, sorted.
const TRADITIONAL: [char; 120] = [
    '來', '個', '們', '動', '務', '區', '員', '問', '單', '嗎', '國', '報', '場', '學', '實', '寫',
    '將', '專', '對', '導', '層', '帶', '幾', '廣', '張', '強', '後', '從', '應', '擇', '據', '數',
    '時', '書', '會', '東', '條', '業', '樣', '機', '檔', '歡', '氣', '決', '沒', '準', '滿', '為',
    '無', '熱', '爾', '現', '產', '當', '發', '種', '節', '約', '級', '組', '結', '給', '統', '經',
    '網', '縣', '總', '續', '聽', '與', '處', '號', '裡', '見', '計', '訊', '記', '設', '許', '話',
    '該', '認', '語', '說', '請', '論', '證', '識', '護', '讀', '變', '讓', '買', '資', '賣', '車',
    '較', '這', '連', '進', '運', '過', '達', '選', '還', '邊', '錢', '長', '門', '開', '間', '關',
    '電', '頭', '題', '類', '顯', '驗', '體', '點',
];
