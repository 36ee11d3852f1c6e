import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'hono';
import { LOCAL, type Principal, SERVER_TOKEN } from '../../library/access/index.ts';
import type { Clock } from '../../base/clock.ts';
import { KeyedBuckets } from '../../base/token-bucket.ts';
import { rateLimited, Refusal } from '../refusal.ts';

export interface GateOptions {
  /** A credential with all rights in the default tenant. */
  token?: string | undefined;
  /** Identifies the owner of a key or token, like `troupe.authenticate`. Without it only `token` is accepted. */
  authenticate?: ((credential: string) => Promise<Principal | null>) | undefined;
  /**
   * Treatment of requests without a credential. `local`, the default: they may do everything if there is no
   * `token`. `refused`: for servers that other machines can reach.
   */
  keyless?: 'local' | 'refused' | undefined;
  /** Rates and numbers of requests. */
  limits?: { triesPerSecond?: number | undefined } | undefined;
}

export interface Identified {
  principal: Principal;
  /** Null for a credential that cannot change. */
  isStillGood: (() => Promise<boolean>) | null;
}

export interface Gate {
  /** Throws `Refusal`. */
  identify(context: Context): Promise<Identified>;
}

const TRIES_PER_SECOND = 20;
/** Number of credentials that are cached as valid. */
const MAX_GOOD = 10_000;
const BEARER = /^Bearer +(\S+) *$/i;
/** Stands for no credential: SDKs of other APIs always send one. */
const PLACEHOLDER = 'none';
const PLACEHOLDER_HEADER = `Bearer ${PLACEHOLDER}`;

export function isKeyless({ token, keyless = 'local' }: GateOptions): boolean {
  return token === undefined && keyless === 'local';
}

/**
 * Identifies the caller of a request. With `authenticate`, an invalid header is refused even where a missing one is allowed;
 * the credential `none` counts as missing.
 * Owns the attempts of each address and the recently valid credentials.
 *  1. The answer is the same whatever is wrong with a credential.
 *  2. Nothing is looked up for an address without attempts left. A credential that was valid the last time costs no
 *     attempt, so that guessing does not lock out valid callers.
 */
export function createGate(options: GateOptions, clock: Pick<Clock, 'monotonic'>): Gate {
  const { token, authenticate, limits = {} } = options;
  const { triesPerSecond = TRIES_PER_SECOND } = limits;
  const tokenDigest = token === undefined ? null : digest(token);
  const tries = new KeyedBuckets({ perSecond: triesPerSecond, clock });
  const good = new Set<string>();

  async function identify(context: Context): Promise<Identified> {
    const header = context.req.header('authorization') ?? PLACEHOLDER_HEADER;
    const [, credential] = BEARER.exec(header) ?? [];
    const isMissing = credential === PLACEHOLDER;
    if (isKeyless(options) && (isMissing || !authenticate)) return { principal: LOCAL, isStillGood: null };
    if (isMissing || credential === undefined) throw unknownCaller();
    const given = digest(credential);
    if (tokenDigest !== null && timingSafeEqual(given, tokenDigest))
      return { principal: SERVER_TOKEN, isStillGood: null };
    const known = given.toString('base64');
    const wait = good.has(known) ? 0 : tries.take(addressOf(context));
    if (wait > 0)
      throw rateLimited(`at most ${triesPerSecond} new credentials a second`, triesPerSecond, wait);
    const principal = (await authenticate?.(credential)) ?? null;
    remember(known, principal !== null);
    if (!principal) throw unknownCaller();
    const before = JSON.stringify(principal);
    return {
      principal,
      isStillGood: async () => JSON.stringify(await authenticate?.(credential)) === before,
    };
  }

  function remember(known: string, isGood: boolean): void {
    good.delete(known);
    if (isGood) good.add(known);
    const [oldest] = good;
    if (good.size > MAX_GOOD && oldest !== undefined) good.delete(oldest);
  }

  return { identify };
}

/** The same error for missing, wrong, revoked and expired credentials. */
function unknownCaller(): Refusal {
  return new Refusal(401, 'token_required', 'send the header "Authorization: Bearer <token>"');
}

/** Digests have equal lengths, so that comparing them reveals nothing about the token's length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Empty if the server does not know it: all callers then share one address. */
function addressOf({ env }: Context): string {
  const { incoming } = Object(env) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? '';
}
