"""Every place that may catch all exceptions: a boundary that logs and ends the work. "file:scope" → what it guards."""

ALLOWED = {
    "operator/omni_operator/controller.py:Controller._look_at": "a failed pass leaves the other models their turn",
    "runtime/omni_runtime/stepping/step_thread.py:StepThread._advance": "a failed request leaves the thread to others",
    "runtime/omni_runtime/engines/ar/engine_thread.py:_settle": "whoever waits for the call gets its error",
    "runtime/omni_runtime/frontend/request_scope.py:RequestScope._guarded": "a defect becomes a 500 and a log line",
    "runtime/omni_runtime/worker/job.py:Job._outcome": "a failed request ends alone, with its reason on the wire",
}
