/** What each key of the queue that BullMQ keeps under a fixed name must be, where it is there at all. */
export const QUEUE_KEYS = {
  id: 'string',
  pc: 'string',
  meta: 'hash',
  events: 'stream',
  marker: 'zset',
  wait: 'list',
  active: 'list',
  paused: 'list',
  delayed: 'zset',
  prioritized: 'zset',
  'waiting-children': 'zset',
  completed: 'zset',
  failed: 'zset',
  repeat: 'zset',
  stalled: 'set',
  'stalled-check': 'string',
  limiter: 'string',
  // Ours.
  dropped: 'string',
} as const;

/** BullMQ keeps a stream of what happened, which nobody reads here. */
export const EVENTS_KEPT = 1_000;
