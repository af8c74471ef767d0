//! The shapes of all icons, as strokes on a grid of 16 × 16.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyph {
    Overview,
    Jobs,
    Train,
    Workers,
    Users,
    Plus,
    #[cfg_attr(not(feature = "ssr"), expect(dead_code, reason = "only server-rendered pages have it"))]
    Minus,
    Check,
    CheckCircle,
    Compare,
    Cross,
    CrossCircle,
    StopCircle,
    Ring,
    Dotted,
    HalfCircle,
    Spinner,
    Filled,
    Drain,
    Copy,
    Download,
    Search,
    Sun,
    Moon,
    System,
    SignOut,
    Menu,
    Warning,
    Key,
    Arrow,
    Up,
    Down,
    Play,
    Raise,
    More,
    Trash,
    Gpu,
    User,
    Gear,
    Bell,
    File,
    Image,
    Usage,
    Shield,
    Sliders,
    Star,
    Fork,
}

impl Glyph {
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Overview => "M2.5 2.5h4.5v6h-4.5zM9 2.5h4.5v3.5h-4.5zM9 8.5h4.5v5h-4.5zM2.5 11h4.5v2.5h-4.5z",
            Self::Jobs => "M6 4h7.5M6 8h7.5M6 12h7.5M2.5 4h.5M2.5 8h.5M2.5 12h.5",
            Self::Train => {
                "M4.6 12.5a3.1 3.1 0 0 1-.5-6.1 4 4 0 0 1 7.7.7 2.7 2.7 0 0 1 .2 5.4M8 13.5v-5M6 10.3l2-2 2 2"
            }
            Self::Workers => "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01M8.5 5h2.5M8.5 11h2.5",
            Self::Users => {
                "M8 5.2a2.2 2.2 0 1 1-4.4 0 2.2 2.2 0 0 1 4.4 0zM2 13c.3-2.4 1.7-3.7 3.8-3.7S9.3 10.6 9.6 13M10.4 3.2a2.1 2.1 0 0 1 .2 4M11.2 9.4c1.7.3 2.6 1.6 2.8 3.6"
            }
            Self::Plus => "M8 3.2v9.6M3.2 8h9.6",
            Self::Minus => "M3.2 8h9.6",
            Self::Check => "M3.2 8.4l3.2 3.2 6.4-7.2",
            Self::CheckCircle => "M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0zM5.4 8.2l1.8 1.8 3.4-3.9",
            Self::Compare => "M2.5 2v11.5H14M5 10l2.5-4 2.5 2 3.5-5M5 6.5l2.5 4 2.5-1 3.5 1.5",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::CrossCircle => "M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0zM6 6l4 4M10 6l-4 4",
            Self::StopCircle => "M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0zM3.8 12.2l8.4-8.4",
            Self::Ring => "M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0z",
            Self::Dotted => {
                "M8 2.5h.01M11.9 4.1h.01M13.5 8h.01M11.9 11.9h.01M8 13.5h.01M4.1 11.9h.01M2.5 8h.01M4.1 4.1h.01"
            }
            Self::HalfCircle => "M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM8 5v3l2 1.4",
            Self::Spinner => "M8 2.5a5.5 5.5 0 1 1-5.5 5.5",
            Self::Filled => "M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM8 7.4v1.2M7.4 8h1.2",
            Self::Drain => "M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM8 5.2v5.4M5.8 8.5l2.2 2.2 2.2-2.2",
            Self::Copy => "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
            Self::Download => "M8 2.5v7.5M4.8 7l3.2 3.2 3.2-3.2M2.8 13.2h10.4",
            Self::Search => "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.3 10.3l3.2 3.2",
            Self::Sun => {
                "M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0zM8 1.6v1.2M8 13.2v1.2M1.6 8h1.2M13.2 8h1.2M3.5 3.5l.8.8M11.7 11.7l.8.8M12.5 3.5l-.8.8M4.3 11.7l-.8.8"
            }
            Self::Moon => "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
            Self::System => "M2.5 3h11v7.5h-11zM5.5 13.2h5M8 10.5v2.7",
            Self::SignOut => "M6.2 2.8h-3.4v10.4h3.4M6.5 8h7M10.8 5.2l2.8 2.8-2.8 2.8",
            Self::Menu => "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
            Self::Warning => "M8 2.3l6.2 11.2h-12.4zM8 6.4v3.4M8 11.6h.01",
            Self::Key => {
                "M8.2 10.8a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM7.4 8.600 13 3M10.600 5.400l2 2M12.400 3.600l1.400 1.400"
            }
            Self::Arrow => "M3 8h9.6M9 4.4l3.6 3.6-3.6 3.6",
            Self::Star => "M8 2l1.8 3.8 4.2.6-3 2.9.7 4.1L8 11.5l-3.7 1.9.7-4.1-3-2.9 4.2-.6z",
            Self::Up => "M4 9.8l4-4 4 4",
            Self::Down => "M4 6.2l4 4 4-4",
            Self::Play => "M5 3.2v9.6l7.6-4.8z",
            Self::Raise => "M8 13V3.5M4 7.500l4-4 4 4",
            Self::More => "M3.500 8h.01M8 8h.01M12.500 8h.01",
            Self::Trash => "M2.8 4.2h10.4M6.2 4v-1.5h3.6v1.5M4.2 4.2l.6 9.3h6.4l.6-9.3",
            Self::Gpu => {
                "M2.5 4h11v7h-11zM4.5 13.2v-2.2M7 13.2v-2.2M9.5 13.2v-2.2M8 7.5m-1.8 0a1.8 1.8 0 1 0 3.6 0 1.8 1.8 0 1 0-3.6 0"
            }
            Self::User => {
                "M10.6 5.4a2.6 2.6 0 1 1-5.2 0 2.6 2.6 0 0 1 5.2 0zM3.2 13.500c.4-2.800 2.200-4.300 4.800-4.300s4.400 1.500 4.800 4.300"
            }
            Self::Gear => {
                "M2.500 4.500h5M11.500 4.500h2M2.500 11.500h2M8.500 11.500h5M9.500 2.700v3.600M6.500 9.700v3.600"
            }
            Self::Bell => "M4.200 11.200v-4.100a3.800 3.800 0 0 1 7.600 0v4.100M2.800 11.200h10.400M6.800 13.500h2.400",
            Self::File => "M3.8 2.2h5.4l3 3v8.6h-8.4zM9 2.4v3h3",
            Self::Usage => "M2.5 13.500h11M4 11v-3M7 11v-7.500M10 11v-5M13 11v-8.500",
            Self::Shield => {
                "M8 1.800l5 2v3.700c0 3.200-2 5.500-5 6.700c-3-1.200-5-3.500-5-6.700v-3.700zM5.800 7.800l1.600 1.600 2.900-3.200"
            }
            Self::Sliders => {
                "M2.500 4.500h6M11.500 4.500h2M2.500 11.500h2M7.500 11.500h6M11.500 4.500a1.500 1.500 0 1 1-3 0 1.500 1.500 0 0 1 3 0zM7.500 11.500a1.500 1.500 0 1 1-3 0 1.500 1.500 0 0 1 3 0z"
            }
            Self::Fork => {
                "M4.5 5.500v5M4.500 5.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4.500 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM11.500 5.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM11.500 5.500c0 3-3 3.500-7 5"
            }
            Self::Image => "M2.5 3h11v10h-11zM2.8 11l3.2-3.2 2.4 2.4 2-2 3 3M10.6 5.8h.01",
        }
    }
}
