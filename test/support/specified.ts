import { readFileSync } from 'node:fs';

/** One behaviour of docs/contributing/specifications.md. */
export interface Specified {
  number: number;
  behaviour: string;
  state: string;
  /** The test that shows it: its file, and the beginning of its name. */
  file: string;
  title: string;
  /** Empty where nothing is to be added. */
  reason: string;
}

const ROW = /^\| (\d+) \| (.+?) \| (\w+) \| `([^`]+)`: (.+?) \| (.*) ?\|$/;

/** All rows of the table, in order. */
export function specified(): Specified[] {
  const text = readFileSync(new URL('../../docs/contributing/specifications.md', import.meta.url), 'utf8');
  return text.split('\n').flatMap((line) => {
    const [, number, behaviour = '', state = '', file = '', title = '', reason = ''] = ROW.exec(line) ?? [];
    return number === undefined
      ? []
      : [{ number: Number(number), behaviour, state, file, title, reason: reason.trim() }];
  });
}
