//! Test cases of sanitizing.

/// Hostile texts and their expected results.
pub(super) const ATTACKS: &[(&str, &str)] = &[
    // Invisible characters.
    ("zero\u{200b}width", "zerowidth"),
    ("\u{feff}mark at the start", "mark at the start"),
    ("soft\u{ad}hyphen", "softhyphen"),
    ("word\u{2060}joiner", "wordjoiner"),
    ("2\u{2062}x \u{2061}f\u{2063}\u{2064}", "2x f"),
    ("filler \u{3164}\u{115f}\u{1160}\u{ffa0}.", "filler ."),
    ("\u{180e}vowel separator", "vowel separator"),
    ("\u{fff9}base\u{fffa}note\u{fffb}", "basenote"),
    ("grapheme\u{34f}joiner", "graphemejoiner"),
    ("old \u{206a}\u{206f}controls", "old controls"),
    ("musical \u{1d173}beam", "musical beam"),
    ("blank\u{2800}braille", "blank braille"),
    ("not \u{fffe}\u{fdd0}\u{10ffff}characters", "not characters"),
    ("far \u{f0041}\u{10fffd}\u{54321}planes", "far planes"),
    // Joiners and selectors without an effect.
    ("a\u{200d}b\u{200c}c", "abc"),
    ("\u{200d}start end\u{200d}", "start end"),
    ("text\u{fe0f} and 5\u{fe0f}", "text and 5"),
    ("selectors\u{fe00}\u{fe01}\u{e0100}\u{e01ef}", "selectors"),
    ("👍\u{fe0f}\u{fe0f}\u{fe0e}", "👍\u{fe0f}"),
    ("👨\u{200d}\u{200d}👩", "👨\u{200d}👩"),
    ("می\u{200c}\u{200c}روم", "می\u{200c}روم"),
    // Text direction.
    ("\u{202a}a\u{202b}b\u{202c}c\u{202d}d\u{202e}e", "abcde"),
    ("\u{2066}f\u{2067}g\u{2068}h\u{2069}", "fgh"),
    ("\u{200e}i\u{200f}j\u{61c}k", "ijk"),
    ("file\u{202e}gpj.exe", "filegpj.exe"),
    // Tags that spell invisible text.
    (
        "hi\u{e0001}\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}\u{e007f}!",
        "hi!",
    ),
    ("🏴\u{e0075}\u{e0073}\u{e0063}\u{e0061}\u{e007f}", "🏴"),
    ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}", "🏴"),
    (
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}\u{e0068}\u{e0069}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    ),
    // Control characters.
    ("nul\u{0}bell\u{7}back\u{8}del\u{7f}", "nulbellbackdel"),
    (
        "a\r\nb\rc\u{c}d\u{b}e\u{85}f\u{2028}g",
        "a\nb\nc\nd\ne\nf\ng",
    ),
    ("a\r\u{200b}\nb", "a\nb"),
    ("c1 \u{80}\u{99}\u{9c}.", "c1 ."),
    // Terminal escapes.
    ("\u{1b}[31mred\u{1b}[0m", "red"),
    ("\u{1b}[38;5;196mred\u{1b}[m \u{1b}[2J\u{1b}[1;1H", "red "),
    ("\u{9b}31mred\u{9b}0m", "red"),
    ("\u{1b}]0;title\u{7}text", "text"),
    (
        "\u{1b}]8;;https://evil.example\u{7}link\u{1b}]8;;\u{7}",
        "link",
    ),
    (
        "\u{1b}]8;id=1;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
        "link",
    ),
    ("\u{9d}0;title\u{9c}text", "text"),
    ("\u{1b}Pq#0;2;0;0;0\u{1b}\\after", "after"),
    (
        "\u{1b}_Gf=100;AAAA\u{1b}\\\u{1b}^pm\u{1b}\\\u{1b}Xsos\u{1b}\\.",
        ".",
    ),
    ("\u{1b}(Bcharset\u{1b}c\u{1b}7\u{1b}=", "charset"),
    ("\u{1b}]52;never ended", "never ended"),
    ("lost [31merror[0m here", "lost error here"),
    ("[1;32mok[m\n[33mwarn[0m", "ok\nwarn"),
    // The same as character references.
    ("a&#8203;b&#x200B;c&#X200b;d&ZeroWidthSpace;e", "abcde"),
    ("a&#0008203;b&#8203 c&#x200bz", "ab cz"),
    ("&shy;&zwj;&zwnj;&lrm;&rlm;&NoBreak;.", "."),
    ("2&it;x&InvisibleTimes;y&af;&ic;z", "2xyz"),
    ("&#x202e;right&#8238;", "right"),
    ("&#xE0041;&#917569;tags", "tags"),
    ("&#27;[31mred&#x1b;[0m&#7;&#13;&#0;&#127;", "red"),
    ("&#27;&#91;31mred", "red"),
    ("&#27;]8;;https://evil.example&#7;link", "link"),
    ("&amp;#8203;&amp;amp;#8203;&#38;#8203;&#x26;amp;zwnj;.", "."),
    ("&amp#8203;&AMP;#x200b;&&num;8203;&shy&semi;.", "."),
    // Sequences that a removal would complete.
    ("&#82\u{200b}03;x", "x"),
    ("&sh&#8203;y;x", "x"),
    ("&sh&sh&sh&shy;y;y;y;x", "x"),
    ("&sh\u{1b}[0my;x", "x"),
    ("\u{1b}\u{200b}[31mx", "x"),
    ("&[31m#8203;[0m", "&[31m#8203;[0m"),
];

/// Texts that must stay unchanged, byte for byte.
pub(super) const UNCHANGED: &[&str] = &[
    "",
    "Plain text, with\ttabs\nand lines.",
    // Emoji: families, professions, skin tones, flags, keys.
    "👨\u{200d}👩\u{200d}👧\u{200d}👦 👩🏽\u{200d}💻 🧑\u{200d}🤝\u{200d}🧑 🤷🏿\u{200d}♀\u{fe0f}",
    "🏳\u{fe0f}\u{200d}🌈 🏴\u{200d}☠\u{fe0f} 🏳\u{fe0f}\u{200d}⚧\u{fe0f} 🇩🇪🇫🇷",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} *\u{20e3} ❤\u{fe0f}\u{200d}🔥 ☺\u{fe0e} ©\u{fe0f} 👁\u{fe0f}\u{200d}🗨\u{fe0f}",
    "⛓\u{fe0f}\u{200d}💥 🙂\u{200d}↔\u{fe0f} 🐦\u{200d}⬛ 🫱🏻\u{200d}🫲🏿",
    // Scripts.
    "می\u{200c}خواهم کتاب\u{200c}ها را بخوانم. ۱۴۰۳ ه\u{200d}",
    "क्षत्रिय क्\u{200d}ष र्\u{200d}य श्री हिन्दी में",
    "ශ්\u{200d}රී ලංකා বাংলা র\u{200d}্যাব ന്\u{200d} தமிழ்",
    "ภาษาไทยไม่มีวรรค น้ำ ที่",
    "العَرَبِيَّةُ والقُرْآنُ \u{600}١٢ عبّارة",
    "שָׁלוֹם עוֹלָם",
    "ᠮᠣᠩᠭᠣᠯ\u{180b}",
    "汉字漢字かなカナ\u{3099}한국어\u{3000}全角",
    "Zoë naïve Ångström Tiê\u{301}ng Việt e\u{301}\u{302}\u{323} ﬁ",
    // Code, mathematics, drawings.
    "fn main() {\n\tprintln!(\"{}\", a & b && !c);\n\tlet p = &it; f(&amp, &num);\n}\n",
    "if (a &lt; b &amp;&amp; c &gt; d) &quot;x&quot; &#39; &nbsp; &copy; &#233; &#x20AC; &#146; &eacute;",
    "https://example.com/?a=1&b=2&shy=3&lt=4&amp;c=5#frag",
    "∀x∈ℝ: ⌈x⌉ ≤ x² − ½ ∑ √2 ≠ ∅ × ÷ ± → ⇒ ∞",
    "┌──┬──┐\n│ a│ b│\n└──┴──┘ █▓▒░ ⠁⠃⠉",
    "printf \"\\033[31mred\\033[0m\" \\e[1mbold\\e[0m \\x1b[0m \\u001b[4m ^[[0m ESC[0m",
    "rate(requests_total[5m]) / rate(errors_total[0m])",
    "between [1m, 2m] and [0m, 3m]; arr[0m",
    "\u{e0b0} prompt \u{f8ff} \u{f120}",
    "non\u{a0}breaking\u{202f}thin\u{2009}spaces",
    "replacement \u{fffd} object \u{fffc}",
];
