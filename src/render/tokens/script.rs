//! What letters beyond ASCII cost.

use super::Price;

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
    pub(super) fn of(c: char) -> Script {
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

    /// What a run of the script costs at its start, and what this character of it costs. Japanese
    /// has fewer tokens of several Chinese characters than Chinese has.
    pub(super) fn rate(self, c: char, japanese: bool) -> (Price, Price) {
        match self {
            Script::Latin if c.is_ascii() => (60, 13),
            Script::Latin => (60, 42),
            Script::Greek => (40, 40),
            // Letters that Russian does not have tell languages with fewer tokens.
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

/// Whether a Korean syllable ends with a consonant that few syllables end with.
fn has_rare_final(c: char) -> bool {
    let finals = (u32::from(c) - 0xac00) % 28;
    !matches!(finals, 0 | 1 | 4 | 8 | 16 | 17 | 19..=21)
}

/// Characters that are frequent in traditional Chinese and not used in simplified Chinese.
pub(super) fn is_traditional(c: char) -> bool {
    matches!(
        c,
        '這' | '個'
            | '們'
            | '來'
            | '說'
            | '時'
            | '會'
            | '對'
            | '國'
            | '學'
            | '為'
            | '與'
            | '後'
            | '過'
            | '還'
            | '開'
            | '關'
            | '點'
            | '長'
            | '門'
            | '間'
            | '問'
            | '題'
            | '無'
            | '當'
            | '發'
            | '種'
            | '樣'
            | '現'
            | '實'
            | '應'
            | '動'
            | '從'
            | '經'
            | '體'
            | '將'
            | '進'
            | '設'
            | '沒'
            | '機'
            | '裡'
            | '嗎'
            | '讓'
            | '電'
            | '話'
            | '請'
            | '號'
            | '員'
            | '業'
            | '務'
            | '產'
            | '資'
            | '訊'
            | '網'
            | '檔'
            | '選'
            | '擇'
            | '據'
            | '統'
            | '總'
            | '變'
            | '數'
            | '單'
            | '報'
            | '場'
            | '見'
            | '東'
            | '車'
            | '書'
            | '買'
            | '賣'
            | '錢'
            | '語'
            | '認'
            | '識'
            | '讀'
            | '寫'
            | '聽'
            | '爾'
            | '區'
            | '縣'
            | '頭'
            | '條'
            | '較'
            | '組'
            | '結'
            | '給'
            | '節'
            | '約'
            | '級'
            | '續'
            | '處'
            | '連'
            | '達'
            | '運'
            | '邊'
            | '驗'
            | '顯'
            | '類'
            | '該'
            | '計'
            | '記'
            | '許'
            | '論'
            | '證'
            | '護'
            | '導'
            | '層'
            | '帶'
            | '幾'
            | '廣'
            | '張'
            | '強'
            | '歡'
            | '氣'
            | '決'
            | '準'
            | '滿'
            | '熱'
            | '專'
    )
}
