import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FakeReply, FakeRequest } from '../../packages/testing/src/fake-vendors.ts';

/** Unique secrets, and everything seen that must not contain them. */
export interface Canaries {
  /** A new secret; the same for the same name. */
  plant(name: string, value?: string): string;
  /** Adds output that somebody might read. Empty output is a mistake of the test. */
  see(where: string, what: unknown): void;
  /** The places where a secret was found. */
  leaks(): string[];
  /** The number of secrets, places and bytes. */
  size(): { planted: number; places: number; bytes: number };
}

export function createCanaries(): Canaries {
  const planted = new Map<string, string>();
  const seen = new Map<string, string>();
  return {
    plant(name, value = `c4n4ry${randomBytes(16).toString('hex')}`) {
      const known = planted.get(name);
      if (known === undefined) planted.set(name, value);
      return known ?? value;
    },
    see(where, what) {
      const text = textOf(what);
      if (text === '') throw new Error(`no output of ${where}`);
      seen.set(where, `${seen.get(where) ?? ''}\n${text}`);
    },
    leaks() {
      const found: string[] = [];
      for (const [name, secret] of planted) {
        for (const [where, text] of seen)
          for (const form of formsOf(secret)) {
            const at = text.indexOf(form);
            if (at >= 0) found.push(`${name} in ${where}: ${text.slice(Math.max(0, at - 80), at + 20)}`);
          }
      }
      return found;
    },
    size: () => ({
      planted: planted.size,
      places: seen.size,
      bytes: [...seen.values()].reduce((sum, { length }) => sum + length, 0),
    }),
  };
}

function textOf(what: unknown): string {
  if (typeof what === 'string') return what;
  return Buffer.isBuffer(what) ? what.toString('latin1') : JSON.stringify(what);
}

/** The secret as it is, in base64 at each offset, and in hex. */
function formsOf(secret: string): string[] {
  const shifted = [0, 1, 2].map((shift) => {
    const whole = Buffer.from(`${'x'.repeat(shift)}${secret}`).toString('base64');
    return whole.slice(4, -4);
  });
  return [secret, ...shifted, Buffer.from(secret).toString('hex')];
}

/** Every file below a directory, as bytes. */
export function filesIn(dir: string): [path: string, bytes: Buffer][] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name))]);
}

/**
 * A vendor that obeys the last message of a person: `do TOOL {…}` makes a call, `fail CODE` fails and repeats the
 * request's headers.
 */
export function obedientVendor({ body, headers, number }: FakeRequest): FakeReply {
  const { messages } = body as { messages: { role: string; content: unknown }[] };
  // Includes the preceding messages if it is the agent's first prompt.
  const last = JSON.stringify(messages.at(-1)).replaceAll('\\"', '"');
  const [order = ''] = [...last.matchAll(/\b(?:do \w+ \{.*?\}|fail \w+|plain words)/g)].at(-1) ?? [];
  const { authorization, 'x-api-key': key } = headers;
  const message = `refused: ${authorization ?? ''} ${key ?? ''} {"authorization":"${authorization ?? key}"}`;
  const [verb, name = '', args = ''] = order.split(' ');
  if (verb === 'fail' && name === 'raw')
    return { raw: { status: 403, headers: { 'x-echo': message }, body: message } };
  if (verb === 'fail') return { error: { code: name as 'provider_auth', message, retryAfter: '0' } };
  if (verb === 'do' && !/"(?:tool|tool_result)"/.test(last)) return { calls: [{ name, args }] };
  return { text: `done ${number}` };
}
