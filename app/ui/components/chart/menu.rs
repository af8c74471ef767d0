//! The menu of a chart: its y axis, full screen, and its data and picture as files.

use leptos::html;
use leptos::prelude::*;

use super::data::Chart;
use super::options::{Y_FORM, YLimits};
use super::state::ChartState;
use super::{ChartGroup, ChartView, FULL};
use crate::protocol::percent_encoding;
use crate::ui::browser::{self, PictureFormat};
use crate::ui::components::icon::Icon;
use crate::ui::components::modal::use_modal;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// What the menus of the charts of a page share.
#[derive(Clone, Copy)]
pub(crate) struct ChartMenu {
    state: ChartState,
    /// The address of a CSV file, to which the name of a metric is added; none if there is no such file.
    csv: Signal<Option<String>>,
    /// The ID of the chart that is shown on the full screen.
    enlarged: RwSignal<Option<String>>,
    /// A function, so that pages whose charts have no menu do not contain its code.
    draw: fn(Self, Memo<Chart>) -> AnyView,
}

impl ChartMenu {
    pub fn new(state: ChartState, csv: Signal<Option<String>>) -> Self {
        Self { state, csv, enlarged: RwSignal::new(None), draw: draw_menu }
    }

    pub(super) fn draw(self, chart: Memo<Chart>) -> AnyView {
        (self.draw)(self, chart)
    }
}

fn draw_menu(menu: ChartMenu, chart: Memo<Chart>) -> AnyView {
    let words = &t().charts;
    let title = Memo::new(move |_| chart.with(|chart| chart.title.clone()));
    let csv = move || {
        let address = menu.csv.get()? + &encoded(&chart.with(|chart| chart.metric().to_owned()));
        Some(
            view! { <a class="menu-item" rel="external" href=address download=""><Icon glyph=Glyph::File/>{words.save_csv}</a> },
        )
    };
    let save = move |format| {
        move |event: leptos::ev::MouseEvent| {
            let name = chart.with_untracked(|chart| chart.metric().replace('/', "-"));
            browser::save_chart(&event, format, &name);
        }
    };
    let enlarge = move |event: leptos::ev::MouseEvent| {
        browser::close_enclosing_popover(&event);
        menu.enlarged.set(Some(chart.with_untracked(|chart| chart.id.clone())));
    };
    view! {
        <details class="row-menu">
            <summary class="icon-button" aria-label=move || words.menu_of.of(title.get())><Icon glyph=Glyph::More/></summary>
            <div class="row-menu-body">
                <YLimitsForm chart=chart state=menu.state/>
                <button type="button" class="menu-item js-only" on:click=enlarge><Icon glyph=Glyph::Search/>{words.full_screen}</button>
                {csv}
                <button type="button" class="menu-item js-only" on:click=save(PictureFormat::Svg)><Icon glyph=Glyph::Image/>{words.save_svg}</button>
                <button type="button" class="menu-item js-only" on:click=save(PictureFormat::Png)><Icon glyph=Glyph::Image/>{words.save_png}</button>
            </div>
        </details>
    }
    .into_erased()
}

fn encoded(text: &str) -> String {
    let mut output = String::new();
    percent_encoding::encode(text, b"", &mut output);
    output
}

/// The ends of the y axis. Without scripts, the form asks for the same page with them.
#[component]
fn YLimitsForm(chart: Memo<Chart>, state: ChartState) -> impl IntoView {
    let words = &t().charts;
    let metric = Memo::new(move |_| chart.with(|chart| chart.metric().to_owned()));
    let limits = Memo::new(move |_| chart.with(|chart| chart.y_limits));
    let (low, high) = (NodeRef::<html::Input>::new(), NodeRef::<html::Input>::new());
    let apply = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let typed = |input: NodeRef<html::Input>| input.get_untracked().map(|input| input.value()).unwrap_or_default();
        let limits = YLimits::parse(&typed(low), &typed(high));
        state.update(|options| options.set_y_limits(&metric.get_untracked(), limits));
    };
    let number = |input: NodeRef<html::Input>,
                  name: &'static str,
                  label: &'static str,
                  end: fn(YLimits) -> Option<f64>| {
        let value = move || end(limits.get()).map(|end| end.to_string()).unwrap_or_default();
        view! {
            <label><span>{label}</span>
                <input node_ref=input class="input input-sm" name=name type="number" step="any" placeholder=words.automatic
                    value=untrack(value) prop:value=value/>
            </label>
        }
    };
    let fields = move || {
        let fields = state.fields().into_iter();
        fields.map(|(key, value)| view! { <input type="hidden" name=key value=value/> }).collect_view()
    };
    let [of, name_low, name_high] = Y_FORM;
    view! {
        <form class="chart-limits" method="get" action=move || format!("{}#metrics", state.path()) on:submit=apply>
            {fields}
            <input type="hidden" name=of value=metric/>
            {number(low, name_low, words.y_low, |limits| limits.low)}
            {number(high, name_high, words.y_high, |limits| limits.high)}
            <button class="btn btn-sm">{words.apply}</button>
        </form>
    }
    .into_erased()
}

/// The chart that is shown on the full screen.
#[component]
pub(crate) fn EnlargedChart(charts: Memo<Vec<Chart>>, group: ChartGroup, menu: ChartMenu) -> impl IntoView {
    let enlarged = menu.enlarged;
    let is_open = Memo::new(move |_| enlarged.with(Option::is_some));
    let (dialog, on_close) = use_modal(move || is_open.get(), move || enlarged.set(None));
    let chart = Memo::new(move |_| {
        let is_shown = |chart: &&Chart| enlarged.with(|enlarged| *enlarged == Some(chart.id.clone()));
        charts.with(|charts| charts.iter().find(is_shown).cloned()).unwrap_or_default()
    });
    let title = move || chart.with(|chart| chart.title.clone());
    view! {
        <dialog node_ref=dialog class="dialog chart-dialog" closedby="any" aria-label=title on:close=on_close>
            {move || is_open.get().then(|| view! {
                <form method="dialog" class="dialog-head">
                    <button class="btn btn-sm">{t().shell.close}</button>
                </form>
                <ChartView chart=chart group=group sizes=FULL/>
            })}
        </dialog>
    }
    .into_erased()
}
