//! Finds the ID in what people copy: the address of a page, a mention in a chat, a sentence.

/// An ID in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub text: String,
    /// The platform that its surroundings name, by its layout.
    pub platform: Option<&'static str>,
    /// Other IDs of the same address, such as the channel of a message.
    pub beside: Vec<String>,
}

impl Found {
    fn of(platform: &'static str, text: &str) -> Self {
        Self { text: text.to_owned(), platform: Some(platform), beside: Vec::new() }
    }
}

/// Returns the ID in an address, a mention or a sentence, or None where the text itself has to be the ID.
pub fn within(text: &str) -> Option<Found> {
    let text = text.trim();
    mention(text).or_else(|| with_owner(text)).or_else(|| address(text)).or_else(|| sentence(text))
}

/// A mention of Discord: `<@ID>`, `<#ID>`, `<@&ID>`, `<:name:ID>`.
fn mention(text: &str) -> Option<Found> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    let id = inner.trim_start_matches(|character: char| !character.is_ascii_digit());
    let id = inner.rsplit_once(':').map_or(id, |(_, id)| id);
    (id != inner && is_number(id, 1)).then(|| Found::of("discord", id))
}

/// Instagram's programs write the ID of a post and of its owner as one text.
fn with_owner(text: &str) -> Option<Found> {
    let (id, owner) = text.split_once('_')?;
    (is_number(id, 17) && is_number(owner, 1)).then(|| Found::of("instagram", id))
}

fn address(text: &str) -> Option<Found> {
    let is_urn = text.starts_with("urn:li:");
    let rest = text.split_once("://").map(|(_, rest)| rest);
    let rest = rest.or_else(|| (is_urn || HOSTS.iter().any(|host| text.starts_with(host))).then_some(text))?;
    let path = rest.split(['?', '#']).next()?.replace("%3A", ":").replace("%3a", ":");
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let host = if is_urn { "linkedin.com" } else { parts.next()? }.to_ascii_lowercase();
    let parts: Vec<&str> = parts.collect();
    let is_of = |name: &str| host == name || host.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    let after = |names: &[&str]| parts.windows(2).rfind(|pair| names.contains(&pair[0])).map(|pair| pair[1]);
    let number_after = |names: &[&str]| after(names).filter(|id| is_number(id, 1));
    if is_of("x.com") || host.ends_with("twitter.com") {
        return number_after(&["status", "statuses"]).map(|id| Found::of("twitter", id));
    }
    if is_of("discord.com") || is_of("discordapp.com") || is_of("discordapp.net") {
        let mut ids: Vec<String> =
            parts.iter().map(|part| stem(part).to_owned()).filter(|id| is_number(id, 15)).collect();
        let text = ids.pop()?;
        return Some(Found { text, platform: Some("discord"), beside: ids });
    }
    if is_of("instagram.com") {
        return after(&["p", "reel", "reels", "tv"]).map(|code| Found::of("instagram", code));
    }
    if is_of("tiktok.com") {
        return number_after(&["video", "photo"]).map(|id| Found::of("tiktok", id));
    }
    if is_of("linkedin.com") {
        let is_separator = |character: char| !character.is_ascii_digit();
        return path.split(is_separator).find(|id| is_number(id, 19)).map(|id| Found::of("linkedin", id));
    }
    if is_of("weibo.com") || is_of("weibo.cn") {
        return parts.iter().find(|id| is_number(id, 16)).map(|id| Found::of("weibo", id));
    }
    let of_mastodon = parts.windows(2).rfind(|pair| pair[0].starts_with('@') || pair[0] == "statuses");
    if let Some(id) = of_mastodon.map(|pair| pair[1]).filter(|id| is_number(id, 17)) {
        return Some(Found::of("mastodon", id));
    }
    let id = parts.iter().rev().find(|part| is_number(part, 15) || [26, 36].contains(&part.len()))?;
    Some(Found { text: (*id).to_owned(), ..Found::default() })
}

/// Addresses that people write without `https://`.
const HOSTS: &[&str] =
    &["www.", "x.com/", "twitter.com/", "discord.com/", "instagram.com/", "linkedin.com/", "tiktok.com/"];

/// The only long number of a sentence.
fn sentence(text: &str) -> Option<Found> {
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| is_number(word, 15));
    let word = words.next()?;
    let is_all = !text.contains(|character: char| character.is_alphabetic());
    (!is_all && text.contains(' ') && words.next().is_none())
        .then(|| Found { text: word.to_owned(), ..Found::default() })
}

fn stem(part: &str) -> &str {
    part.split('.').next().unwrap_or(part)
}

fn is_number(text: &str, least: usize) -> bool {
    (least..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::within;

    fn found(text: &str) -> Option<(String, Option<&'static str>)> {
        within(text).map(|found| (found.text, found.platform))
    }

    #[test]
    fn an_address_names_the_platform() {
        for (address, id, platform) in [
            ("https://x.com/jack/status/20", "20", "twitter"),
            ("https://mobile.twitter.com/a/status/1541815603606036480?s=20&t=x", "1541815603606036480", "twitter"),
            ("twitter.com/i/web/status/1541815603606036480", "1541815603606036480", "twitter"),
            ("https://cdn.discordapp.com/emojis/41771983429993937.png", "41771983429993937", "discord"),
            ("https://www.instagram.com/p/CkNhKCWSPR7/?igsh=x", "CkNhKCWSPR7", "instagram"),
            ("https://www.instagram.com/someone/reel/CkNhKCWSPR7/", "CkNhKCWSPR7", "instagram"),
            ("https://www.tiktok.com/@a/video/6718335390845095173", "6718335390845095173", "tiktok"),
            (
                "https://www.linkedin.com/feed/update/urn%3Ali%3Aactivity%3A7193253219450474497/",
                "7193253219450474497",
                "linkedin",
            ),
            ("https://mastodon.social/@Gargron/103270115826048975", "103270115826048975", "mastodon"),
            ("https://mastodon.social/users/Gargron/statuses/103270115826048975", "103270115826048975", "mastodon"),
            ("<@!175928847299117063>", "175928847299117063", "discord"),
            ("<a:party:41771983429993937>", "41771983429993937", "discord"),
            ("2278584739065882267_1234567", "2278584739065882267", "instagram"),
        ] {
            assert_eq!(found(address), Some((id.to_owned(), Some(platform))), "{address}");
        }
    }

    #[test]
    fn a_message_has_a_channel_and_a_server() {
        let found = within("https://discord.com/channels/197038439483310086/334385199974967042/334385199974967043");
        assert_eq!(
            found.map(|found| found.beside),
            Some(vec!["197038439483310086".to_owned(), "334385199974967042".to_owned()])
        );
    }

    #[test]
    fn other_texts_are_themselves() {
        for text in [
            "1541815603606036480",
            "1 541 815 603 606 036 480",
            "<@mention>",
            "https://x.com/jack",
            "user_01h455vb4pex5vsknk084sn02q",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found("the post 1541815603606036480 of mine"), Some(("1541815603606036480".to_owned(), None)));
    }
}
