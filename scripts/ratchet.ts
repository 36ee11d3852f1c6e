import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

/** Counts that may only get better, against a record beside the scripts. */
export interface Ratchet<Weight extends object> {
  /** In `scripts`. */
  record: string;
  weigh(): Weight;
  /** A line for each count that is worse than the record. */
  worse(record: Weight, now: Weight): string[];
}

export function readRecord<Weight extends object>({ record }: Ratchet<Weight>): Weight {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, record), 'utf8')) as Weight;
}

/** `--json` prints for programs; `--save` writes the record, and a worse one only with `--raise "why"`. */
export function runRatchet<Weight extends object>(ratchet: Ratchet<Weight>): void {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, save: { type: 'boolean' }, raise: { type: 'string' } },
  });
  const now = ratchet.weigh();
  if (values.json) console.log(JSON.stringify(now));
  else console.table(now);
  if (!values.save) return;
  const worse = values.raise ? [] : ratchet.worse(readRecord(ratchet), now);
  if (worse.length > 0)
    throw new Error(`worse than the record:\n${worse.join('\n')}\nIf it must be: --save --raise "why"`);
  writeFileSync(path.join(import.meta.dirname, ratchet.record), `${JSON.stringify(now, null, 2)}\n`);
}
