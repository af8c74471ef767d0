//! Who comes first, and what limits say.

mod simulation;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{NOW, gpu_demand, job, worker};
use crate::domain::job::{Demand, Job, JobSpec};
use crate::domain::job_share::JobClass;
use crate::domain::plan::{ConcurrencyLimits, JobQueue, PlannerFleet, ReachedLimit, plan};
use crate::domain::worker::Worker;

fn team(name: &str, settings: ShareSettings, members: &[(&str, ShareSettings)]) -> (String, Team) {
    let member =
        |(user, settings): &(&str, ShareSettings)| ((*user).to_owned(), TeamMember { since: NOW, settings: *settings });
    let members = members.iter().map(member).collect();
    (name.to_owned(), Team { name: name.to_owned(), settings, members, ..Team::unchanged_default() })
}

fn settings(change: impl FnOnce(&mut ShareSettings)) -> ShareSettings {
    let mut settings = ShareSettings::default();
    change(&mut settings);
    settings
}

fn of(team: &str, user: &str, job: Job) -> Job {
    Job { submitted_by: user.to_owned(), spec: JobSpec { team: team.to_owned(), ..job.spec.clone() }, ..job }
}

fn in_class(class: JobClass, job: Job) -> Job {
    Job { spec: JobSpec { class, ..job.spec.clone() }, ..job }
}

fn one_gpu(n: u16) -> Job {
    job(n, gpu_demand(1))
}

/// A fleet of hosts with eight GPUs each, of which `leased` have some.
fn fleet<'f>(
    teams: &'f Teams,
    workers: &'f [Worker],
    used: &'f BTreeMap<ShareKey, ShareUsage>,
    leased: &'f [Job],
) -> PlannerFleet<'f> {
    let fleet = PlannerFleet::new(workers, leased, ConcurrencyLimits::default());
    let mut shares = ShareTree::new(teams, fleet.shares.size());
    for job in leased {
        shares.add_job(job, job.active_lease().expect("leased").gpus.len());
    }
    for (key, usage) in used {
        shares.add(key, usage, ShareLoad::default());
    }
    fleet.with_shares(shares)
}

/// Who gets how many GPUs of eight.
fn granted(teams: &Teams, jobs: &[Job]) -> BTreeMap<String, usize> {
    granted_after(teams, jobs, &BTreeMap::new())
}

fn granted_after(teams: &Teams, jobs: &[Job], used: &BTreeMap<ShareKey, ShareUsage>) -> BTreeMap<String, usize> {
    let workers = [worker(1, &[80; 8], 8)];
    let planned = plan(JobQueue::new(jobs), fleet(teams, &workers, used, &[]), NOW);
    let mut by_user = BTreeMap::new();
    for assignment in planned.assignments {
        let job = jobs.iter().find(|job| job.id == assignment.job).expect("planned");
        *by_user.entry(job.submitted_by.clone()).or_default() += assignment.gpus.len();
    }
    by_user
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(user, gpus)| ((*user).to_owned(), *gpus)).collect()
}

#[test]
fn forty_jobs_of_one_user_leave_room_for_the_one_of_another() {
    let flood = (0..40).map(|n| of(DEFAULT_TEAM, "ada", one_gpu(n)));
    let jobs: Vec<Job> = flood.chain([of(DEFAULT_TEAM, "bob", one_gpu(50))]).collect();
    assert_eq!(granted(&Teams::new(), &jobs), counts(&[("ada", 7), ("bob", 1)]));
}

#[test]
fn gpus_are_divided_by_the_weights_of_teams_then_of_members() {
    let heavy = settings(|settings| settings.weight = 3);
    let teams = Teams::from([
        team("vision", heavy, &[("ada", ShareSettings::default()), ("bob", settings(|s| s.weight = 2))]),
        team("speech", ShareSettings::default(), &[("cleo", ShareSettings::default())]),
    ]);
    let jobs_of =
        |team: &'static str, user: &'static str, first| (first..first + 10).map(move |n| of(team, user, one_gpu(n)));
    let jobs: Vec<Job> =
        jobs_of("speech", "cleo", 0).chain(jobs_of("vision", "ada", 20)).chain(jobs_of("vision", "bob", 40)).collect();
    assert_eq!(granted(&teams, &jobs), counts(&[("ada", 2), ("bob", 4), ("cleo", 2)]));
}

#[test]
fn who_has_used_less_comes_first() {
    let used = |user: &str, hours: f64| {
        let key = ShareKey { team: DEFAULT_TEAM.to_owned(), user: user.to_owned() };
        (key, ShareUsage { gpu_time: hours * 3_600_000.0, ..ShareUsage::default() })
    };
    let jobs: Vec<Job> =
        (0..8).flat_map(|n| [of(DEFAULT_TEAM, "ada", one_gpu(n)), of(DEFAULT_TEAM, "bob", one_gpu(20 + n))]).collect();
    let granted = |ada, bob| granted_after(&Teams::new(), &jobs, &BTreeMap::from([used("ada", ada), used("bob", bob)]));
    assert_eq!(granted(5.0, 5.0), counts(&[("ada", 4), ("bob", 4)]));
    assert_eq!(granted(5.0, 1.0), counts(&[("ada", 2), ("bob", 6)]));
    assert_eq!(granted(50.0, 1.0), counts(&[("bob", 8)]));
}

#[test]
fn guaranteed_gpus_come_before_shares() {
    let guaranteed = settings(|settings| settings.guaranteed_gpus = 6);
    let teams = Teams::from([
        team("speech", ShareSettings::default(), &[("cleo", ShareSettings::default())]),
        team("vision", guaranteed, &[("ada", ShareSettings::default())]),
    ]);
    let jobs: Vec<Job> =
        (0..10).flat_map(|n| [of("speech", "cleo", one_gpu(n)), of("vision", "ada", one_gpu(20 + n))]).collect();
    assert_eq!(granted(&teams, &jobs), counts(&[("ada", 6), ("cleo", 2)]));
}

#[test]
fn urgent_jobs_come_first_and_idle_ones_last_and_uncounted() {
    let jobs = |class| (0..8).map(move |n| in_class(class, of(DEFAULT_TEAM, "ada", one_gpu(n + 10))));
    let normal = |user: &'static str, first: u16| (first..first + 8).map(move |n| of(DEFAULT_TEAM, user, one_gpu(n)));
    let with =
        |others: Vec<Job>| granted(&Teams::new(), &others.into_iter().chain(normal("bob", 40)).collect::<Vec<_>>());
    assert_eq!(with(jobs(JobClass::Urgent).collect()), counts(&[("ada", 8)]));
    assert_eq!(with(jobs(JobClass::Idle).collect()), counts(&[("bob", 8)]));
    let both = jobs(JobClass::Idle).take(4).chain(normal("cleo", 60).take(4)).collect();
    assert_eq!(granted(&Teams::new(), &Vec::from_iter::<Vec<Job>>(both)), counts(&[("ada", 4), ("cleo", 4)]));
}

#[test]
fn limits_of_teams_and_members_hold_and_are_named() {
    let limited = |change: fn(&mut ShareSettings)| {
        let teams = Teams::from([team("vision", settings(change), &[("ada", ShareSettings::default())])]);
        let jobs: Vec<Job> = (0..8).map(|n| of("vision", "ada", job(n, gpu_demand(2)))).collect();
        let workers = [worker(1, &[80; 8], 8)];
        let used = BTreeMap::from([(
            ShareKey { team: "vision".to_owned(), user: "ada".to_owned() },
            ShareUsage { month_gpu_time: 7_200_000.0, ..ShareUsage::default() },
        )]);
        let planned = plan(JobQueue::new(&jobs), fleet(&teams, &workers, &used, &[]), NOW);
        let reached = planned.fleet.reached_limit(&jobs[7]);
        let idle = planned.fleet.reached_limit(&in_class(JobClass::Idle, jobs[7].clone()));
        assert_eq!(idle, None);
        (planned.assignments.len(), reached)
    };
    let of_team = |limit| Some(ReachedLimit::Share(ReachedShareLimit { level: ShareLevel::Team, limit }));
    assert_eq!(limited(|_| ()), (4, None));
    assert_eq!(limited(|s| s.max_gpus = Some(5)), (2, of_team(ShareLimit::Gpus(5))));
    assert_eq!(limited(|s| s.max_gpus = Some(0)), (0, of_team(ShareLimit::Gpus(0))));
    assert_eq!(limited(|s| s.max_running_jobs = Some(3)), (3, of_team(ShareLimit::RunningJobs(3))));
    assert_eq!(limited(|s| s.max_gpu_hours = Some(3)), (4, None));
    assert_eq!(limited(|s| s.max_gpu_hours = Some(2)), (0, of_team(ShareLimit::GpuHours(2))));

    let teams = Teams::from([team("vision", ShareSettings::default(), &[("ada", settings(|s| s.max_gpus = Some(1)))])]);
    let tree = ShareTree::new(&teams, FleetSize::default());
    let reached = tree.reached_limit(&of("vision", "ada", job(1, gpu_demand(2))));
    assert_eq!(reached, Some(ReachedShareLimit { level: ShareLevel::Member, limit: ShareLimit::Gpus(1) }));
    assert_eq!(tree.reached_limit(&of("vision", "ada", job(1, Demand::default()))), None);
    assert_eq!(tree.reached_limit(&of("vision", "bob", job(1, gpu_demand(2)))), None);
}

#[test]
fn a_deleted_team_counts_as_the_default_one() {
    let limited = settings(|settings| settings.max_gpus = Some(1));
    let teams = Teams::from([team(DEFAULT_TEAM, limited, &[])]);
    let jobs: Vec<Job> = (0..2).map(|n| of("gone", "ada", one_gpu(n))).collect();
    assert_eq!(granted(&teams, &jobs), counts(&[("ada", 1)]));
}

#[test]
fn a_user_submits_for_the_team_that_they_joined_first() {
    let since = |seconds: i64| TeamMember { since: Timestamp(seconds), settings: ShareSettings::default() };
    let with = |name: &str, at| {
        let members = BTreeMap::from([("ada".to_owned(), since(at))]);
        (name.to_owned(), Team { name: name.to_owned(), members, ..Team::unchanged_default() })
    };
    let teams = Teams::from([with(DEFAULT_TEAM, 0), with("speech", 7), with("vision", 5)]);
    assert_eq!((home_team(&teams, "ada"), home_team(&teams, "bob")), ("vision", DEFAULT_TEAM));
    assert!(teams["vision"].includes("ada") && !teams["vision"].includes("bob") && teams[DEFAULT_TEAM].includes("bob"));
}

/// The order by comparing all shares before each job.
fn expected_order<'j>(jobs: &'j [Job], mut tree: ShareTree<'j>) -> Vec<&'j Job> {
    let mut waiting: Vec<&Job> = jobs.iter().collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let rank = |job: &&Job, tree: &mut ShareTree<'j>| {
            let (team, member) =
                (tree.team(&job.spec.team), tree.member(&job.spec.team, &jobs[index(jobs, job)].submitted_by));
            let class = job.spec.class;
            let key = crate::domain::plan::job_sort_key(job);
            (class, tree.team_rank(team, class), tree.member_rank(member, class), (key.0, key.1, key.2.clone()))
        };
        let first = (0..waiting.len()).min_by_key(|n| rank(&waiting[*n], &mut tree)).expect("not empty");
        let job = waiting.remove(first);
        tree.add_job(job, counted_gpus(&job.spec.demand) as usize);
        order.push(job);
    }
    order
}

fn index(jobs: &[Job], job: &Job) -> usize {
    jobs.iter().position(|other| std::ptr::eq(other, job)).expect("one of them")
}

proptest! {
    #[test]
    fn the_rotation_compares_all_shares_before_each_job(
        jobs in prop::collection::vec((0_usize..3, 0_usize..3, 0_usize..3, 0_u32..4, 0_u8..3), 0..25),
        weights in prop::array::uniform3(1_u32..4), guaranteed in prop::array::uniform3(0_u32..4), gpus in 0_u32..20,
    ) {
        let names = ["speech", "vision", "gone"];
        let users = ["ada", "bob", "cleo"];
        let team_of = |n: usize| {
            let with = |settings: &mut ShareSettings| (settings.weight, settings.guaranteed_gpus) = (weights[n], guaranteed[n]);
            team(names[n], settings(with), &[(users[n], settings(|s| s.weight = weights[2 - n]))])
        };
        let teams = Teams::from([team_of(0), team_of(1)]);
        let job_of = |(n, (team, user, class, gpus, priority)): (u16, (usize, usize, usize, u32, u8))| {
            let job = of(names[team], users[user], job(n, gpu_demand(gpus)));
            in_class(JobClass::ALL[class], Job { priority, ..job })
        };
        let jobs: Vec<Job> = (0..).zip(jobs).map(job_of).collect();
        let tree = ShareTree::new(&teams, FleetSize { gpus, slots: 8 });
        let ids = |jobs: Vec<&Job>| jobs.into_iter().map(|job| job.id.clone()).collect::<Vec<_>>();
        let order = JobQueue::new(&jobs).in_order(tree.clone()).collect();
        prop_assert_eq!(ids(order), ids(expected_order(&jobs, tree)));
    }

    /// Three equal users, each with enough jobs: none gets more than one GPU more, whatever the flood of one of them.
    #[test]
    fn equal_users_get_equal_numbers_of_gpus(floods in prop::array::uniform3(3_u16..300)) {
        let jobs_of = |(user, (name, number)): (u16, (&'static str, u16))| {
            (0..number).map(move |n| of(DEFAULT_TEAM, name, one_gpu(user * 1_000 + n)))
        };
        let jobs: Vec<Job> = (0..).zip(["ada", "bob", "cleo"].into_iter().zip(floods)).flat_map(jobs_of).collect();
        let granted = granted(&Teams::new(), &jobs);
        prop_assert!(granted.values().all(|gpus| (2..=3).contains(gpus)), "{granted:?}");
    }
}
