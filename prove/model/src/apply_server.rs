//! Steps of servers and commands of users.

use crate::action::Action;
use crate::apply::{stop_server, stream_host};
use crate::protocol::Protocol;
use crate::service::Service;
use crate::world::World;

impl Protocol {
    /// Applies a step of a server; none if it is not possible.
    pub fn apply_to_server(&self, world: &mut World, action: &Action) -> Option<()> {
        let budget = &mut world.budget;
        match *action {
            Action::StartServer(n) => {
                world.servers[n].up_since = Some(0);
                Service { protocol: self, world, server: n }.drop_dead_streams(true);
            }
            Action::KillServer(n) => {
                budget.server_kills -= 1;
                stop_server(world, n);
            }
            Action::TakeLead(n) => world.servers[n].leads_since = Some(0),
            Action::LoseLead(n) => {
                budget.leader_changes -= 1;
                world.servers[n].leads_since = None;
            }
            Action::ReadOldState(n) => {
                budget.old_reads -= 1;
                world.servers[n].old_state = Some(Box::new(world.database.clone()));
            }
            Action::CheckHealth(server, worker) => {
                let is_judged = Service { protocol: self, world, server }.check_health(worker);
                return is_judged.then_some(());
            }
            Action::Sweep(n) => {
                let mut service = Service { protocol: self, world, server: n };
                service.drop_dead_streams(false);
                service.sweep();
            }
            Action::CommitSubmit(n) => {
                let job = world.servers[n].uncommitted.take()?;
                Service { protocol: self, world, server: n }.commit_submit(job.into());
            }
            Action::NoticeClosed(worker) => {
                let (server, _) = stream_host(world, worker)?;
                Service { protocol: self, world, server }.close_stream(worker);
            }
            _ => return None,
        }
        Some(())
    }

    /// Applies a command of a user, on the first server that runs; none if it is not possible.
    pub fn apply_command(&self, world: &mut World, action: &Action) -> Option<()> {
        let server = world.servers.iter().position(|server| server.up_since.is_some())?;
        let mut service = Service { protocol: self, world, server };
        match *action {
            Action::Submit(n) => service.submit(n),
            Action::Retry(n, retried) => service.retry(n, retried),
            Action::Cancel(n) => {
                service.world.budget.cancels -= 1;
                return service.cancel(n).then_some(());
            }
            Action::Drain(n, has_deadline) => {
                service.world.budget.drains -= 1;
                service.drain(n, has_deadline);
            }
            Action::Resume(n) => service.resume(n),
            Action::Rotate(n, overlaps) => {
                service.world.budget.rotations -= 1;
                service.rotate(n, overlaps);
            }
            Action::Delete(n) => {
                service.world.budget.deletions -= 1;
                return service.delete(n).then_some(());
            }
            _ => return None,
        }
        Some(())
    }
}
