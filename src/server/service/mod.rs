//! Use cases. Each loads what it needs inside a transaction, lets the domain decide, writes the decision guarded by the
//! state it was based on, appends the audit entry, and sends change notifications after the commit (see
//! [`unit_of_work`]). Nothing else writes state.

pub mod access;
pub mod agents;
pub mod artifacts;
pub mod attempt_ref;
pub mod audit;
pub mod auth_grant;
pub mod bulk;
pub mod configs;
pub mod context;
pub mod error;
pub mod gpus;
pub mod jobs;
pub mod logs;
mod names;
pub mod policy;
pub mod search;
pub mod secrets;
pub mod shares;
pub mod system;
pub mod unit_of_work;
pub mod usage;
pub mod workers;

use std::path::Path;
use std::sync::{Arc, Mutex};

use self::access::per_user_limit::PerUserLimiter;
use self::access::{AccessService, Authenticator, Blocklist};
use self::agents::AgentService;
use self::agents::admission::RegistrationAdmission;
use self::artifacts::ArtifactService;
use self::artifacts::file_usage::FileUsageCache;
use self::artifacts::upload_finalizer::UploadFinalizer;
use self::audit::AuditService;
use self::audit::checkpoint::AuditSigner;
use self::audit::rejections::AuditRateLimiter;
use self::bulk::BulkService;
use self::configs::ConfigService;
pub use self::context::ServiceContext;
use self::context::disk_space::DiskSpaceGuard;
use self::context::leadership::Leadership;
use self::context::presence::Presence;
use self::gpus::GpuService;
use self::gpus::history::GpuHistoryStore;
use self::jobs::JobService;
use self::jobs::dispatch::store_hooks;
use self::jobs::index::JobIndexCache;
use self::jobs::preemption::FruitlessPass;
use self::logs::LogService;
use self::logs::searches::LogSearchLimiter;
pub use self::policy::ServerPolicy;
use self::search::SearchService;
use self::secrets::SecretService;
use self::shares::ShareService;
use self::system::SystemService;
use self::usage::UsageService;
use self::workers::WorkerService;
use self::workers::gpu_readings::GpuReadings;
use self::workers::token_conflict::TakeoverTracker;
use crate::change_notifier::ChangeNotifier;
use crate::clock::Clock;
use crate::files::artifacts::ArtifactStore;
use crate::files::audit_checkpoints::AuditCheckpointFile;
use crate::files::logs::LogStore;
use crate::files::uploads::UploadStore;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::store::Store;
use crate::vault::Vault;

/// What a server depends on: database, clock, randomness, settings, and keys.
pub struct ServiceParts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub policy: ServerPolicy,
    /// Identifies this process among the servers of a database.
    pub server: String,
    pub token_signing_key: Vec<u8>,
    pub vault: Vault,
    pub disk_space: DiskSpaceGuard,
    pub blocklist: Blocklist,
    pub checkpoints: AuditCheckpointFile,
}

/// The use cases, by aggregate. Each service has what it needs, so that its fields say what it can touch.
pub struct Services {
    pub context: Arc<ServiceContext>,
    pub access: Arc<AccessService>,
    pub agents: Arc<AgentService>,
    pub artifacts: Arc<ArtifactService>,
    pub audit: Arc<AuditService>,
    pub bulk: Arc<BulkService>,
    pub configs: Arc<ConfigService>,
    pub gpus: Arc<GpuService>,
    pub jobs: Arc<JobService>,
    pub logs: Arc<LogService>,
    pub search: SearchService,
    pub secrets: Arc<SecretService>,
    pub shares: Arc<ShareService>,
    pub system: Arc<SystemService>,
    pub usage: UsageService,
    pub workers: Arc<WorkerService>,
}

impl ServiceParts {
    fn into_context(self) -> (Arc<ServiceContext>, Blocklist, AuditCheckpointFile) {
        let context = ServiceContext {
            metrics: Metrics::new(self.clock.now()),
            store: self.store,
            notifier: ChangeNotifier::default(),
            clock: self.clock,
            random: self.random,
            policy: self.policy,
            server: self.server,
            leadership: Leadership::default(),
            presence: Presence::default(),
            disk_space: self.disk_space,
            vault: self.vault,
            token_signing_key: self.token_signing_key,
            last_job_id: Mutex::default(),
        };
        (Arc::new(context), self.blocklist, self.checkpoints)
    }
}

impl Services {
    /// Builds the services of a server with this data directory.
    ///
    /// # Errors
    /// When a directory of files cannot be created.
    pub fn open(parts: ServiceParts, data: &Path) -> anyhow::Result<Self> {
        let (context, blocklist, checkpoints) = parts.into_context();
        let limits = &context.policy.usage_limits;
        context.store.set_hooks(store_hooks(&context));
        let logs = Arc::new(LogStore::open(data.join("logs"))?);
        let artifacts = Arc::new(ArtifactStore::open(&data.join("artifacts"))?);
        let uploads = Arc::new(UploadStore::open(data.join("uploads"))?);
        let (readings, takeovers) = (Arc::<GpuReadings>::default(), Arc::<TakeoverTracker>::default());

        let access = Arc::new(AccessService {
            authenticator: Authenticator::new(blocklist),
            event_streams: PerUserLimiter::new(limits.event_streams_per_user),
            context: Arc::clone(&context),
        });
        let audit = Arc::new(AuditService {
            limiter: AuditRateLimiter::default(),
            signer: AuditSigner::new(checkpoints),
            context: Arc::clone(&context),
        });
        let workers = Arc::new(WorkerService {
            readings: Arc::clone(&readings),
            takeovers: Arc::clone(&takeovers),
            audit: Arc::clone(&audit),
            context: Arc::clone(&context),
        });
        let jobs = Arc::new(JobService {
            logs: Arc::clone(&logs),
            artifacts: Arc::clone(&artifacts),
            uploads: Arc::clone(&uploads),
            index: JobIndexCache::default(),
            fruitless_pass: FruitlessPass::default(),
            context: Arc::clone(&context),
        });
        let gpus = Arc::new(GpuService {
            readings: Arc::clone(&readings),
            history: GpuHistoryStore::open(data),
            access: Arc::clone(&access),
            workers: Arc::clone(&workers),
            context: Arc::clone(&context),
        });
        let agents = Arc::new(AgentService {
            admission: RegistrationAdmission::default(),
            readings: Arc::clone(&readings),
            takeovers,
            access: Arc::clone(&access),
            workers: Arc::clone(&workers),
            jobs: Arc::clone(&jobs),
            gpus: Arc::clone(&gpus),
            context: Arc::clone(&context),
        });
        Ok(Self {
            artifacts: Arc::new(ArtifactService {
                files: artifacts,
                uploads,
                finalizer: UploadFinalizer::default(),
                file_usage: Arc::new(FileUsageCache::default()),
                agents: Arc::clone(&agents),
                jobs: Arc::clone(&jobs),
                context: Arc::clone(&context),
            }),
            logs: Arc::new(LogService {
                files: Arc::clone(&logs),
                searches: LogSearchLimiter::new(limits.log_searches, limits.log_searches_per_user),
                agents: Arc::clone(&agents),
                jobs: Arc::clone(&jobs),
                context: Arc::clone(&context),
            }),
            system: Arc::new(SystemService {
                logs,
                readings,
                access: Arc::clone(&access),
                agents: Arc::clone(&agents),
                jobs: Arc::clone(&jobs),
                workers: Arc::clone(&workers),
                context: Arc::clone(&context),
            }),
            bulk: Arc::new(BulkService {
                access: Arc::clone(&access),
                jobs: Arc::clone(&jobs),
                workers: Arc::clone(&workers),
                context: Arc::clone(&context),
            }),
            configs: Arc::new(ConfigService { context: Arc::clone(&context) }),
            search: SearchService { jobs: Arc::clone(&jobs), context: Arc::clone(&context) },
            secrets: Arc::new(SecretService { context: Arc::clone(&context) }),
            shares: Arc::new(ShareService { context: Arc::clone(&context) }),
            usage: UsageService::new(Arc::clone(&context)),
            access,
            agents,
            audit,
            gpus,
            jobs,
            workers,
            context,
        })
    }
}
