//! Spanish: the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "Resumen",
    disk_full: "El disco del servidor está casi lleno. Lo que está en ejecución continúa, pero no se aceptan trabajos nuevos hasta que un administrador libere espacio.",
    workers_online: "Workers en línea",
    workers_of: Phrase("de {0}"),
    gpus: "GPU",
    gpus_busy: count("1 en uso", "{0} en uso"),
    running: "En ejecución",
    waiting: "En espera",
    failed: "Fallidos",
    ended_well: count("{0} completado", "{0} completados"),
    now_running: "En ejecución ahora",
    nothing_running: "No hay nada en ejecución",
    nothing_running_hint: "Envíe una configuración y empezará en el próximo worker libre.",
    recent: "Trabajos recientes",
    all_jobs: "Todos los trabajos",
    fleet: "Flota",
    all_workers: "Todos los workers",
    start_title: "Tres pasos hasta el primer trabajo",
    start_intro: "Este servidor reparte trabajos de entrenamiento entre máquinas con GPU. Aún no se ha unido ninguna.",
    step_worker: "Crear un worker",
    step_worker_text: "Proporciona un token y el comando para la máquina con GPU.",
    step_connect: "Iniciar allí el agente",
    step_connect_text: "Pegue el comando en la máquina con GPU. El agente detecta sus GPU y contacta con el servidor.",
    step_job: "Entrenar en la nube",
    step_job_text: "Elija una configuración y envíela. El progreso, el registro y los archivos aparecen aquí.",
    done: "Hecho",
};
