import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './packed.ts';

/** The program of docs/how-to/move-from-another-library.md that is written in other libraries beside it, and its printed number of lines. */
export function sameApp(): { counted: number; program: string } {
  const doc = readFileSync(path.join(ROOT, 'docs/how-to/move-from-another-library.md'), 'utf8');
  const [, counted, program = ''] = /\*\*Troupe\*\*: (\d+) lines[^]*?```ts\n([^]*?)```/.exec(doc) ?? [];
  return { counted: Number(counted), program };
}
