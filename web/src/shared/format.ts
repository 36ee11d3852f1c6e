/** 9,812 */
export function whole(count: number): string {
  return count.toLocaleString('en-US');
}

/** 9.8k, 1.2M: for tight spaces. */
export function short(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 10_000) return `${trim(count / 1_000)}k`;
  if (count < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${trim(count / 1_000_000)}M`;
}

function trim(value: number): string {
  return value.toFixed(1).replace(/\.0$/, '');
}

/** `~` marks Troupe's own estimate, as opposed to the vendor's count. */
export function tokens(count: number, { isEstimate = false } = {}): string {
  return isEstimate ? `~${short(count)}` : whole(count);
}

export function percent(part: number, of: number): string {
  return of <= 0 ? '0%' : `${Math.round((part / of) * 100)}%`;
}

/** 340 ms, 4.1 s, 3 m 20 s, 2 h 5 m */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} m ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

/** now, 5 m, 3 h, 12 d: the time since then, in one unit. */
export function age(ms: number): string {
  if (ms < 60_000) return 'now';
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} m`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${whole(Math.floor(ms / 86_400_000))} d`;
}

/** 40 s, 12 m, 3 h 20 m, 6 d 4 h: the time that is left. */
export function remaining(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  const hours = Math.floor(minutes / 60);
  if (minutes < 1) return `${Math.max(0, Math.round(ms / 1_000))} s`;
  if (hours < 1) return `${minutes} m`;
  return hours < 24 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** 12:01:09 */
export function clock(at: number): string {
  return CLOCK.format(at);
}

/** 12:01 for today, else 3 Nov. */
export function day(at: number, now = Date.now()): string {
  return DAY.format(at) === DAY.format(now) ? clock(at).slice(0, 5) : DAY.format(at);
}

/** 12:01:09 for today, else 3 Nov 12:01. */
export function moment(at: number, now = Date.now()): string {
  return DAY.format(at) === DAY.format(now) ? clock(at) : `${DAY.format(at)} ${clock(at).slice(0, 5)}`;
}

/** Dollars, with enough digits for fractions of a cent. */
export function dollars(amount: number): string {
  if (amount === 0) return '$0';
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}

export function plural(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** What went wrong, in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
