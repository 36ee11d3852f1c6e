import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TurnRecord } from './ratchet.ts';

/** The counts. */
const COUNTS = path.join(import.meta.dirname, 'record.json');
/** A line for each function that a scene executes, so that a review shows which ones came and went. */
const FUNCTIONS = path.join(import.meta.dirname, 'record.txt');

export function readRecord(): TurnRecord {
  const counts = JSON.parse(readFileSync(COUNTS, 'utf8')) as Omit<TurnRecord, 'functions'>;
  return {
    ...counts,
    functions: parseFunctions(readFileSync(FUNCTIONS, 'utf8'), Object.keys(counts.scenes)),
  };
}

export function writeRecord({ functions, ...counts }: TurnRecord): void {
  writeFileSync(COUNTS, `${JSON.stringify(counts, null, 2)}\n`);
  writeFileSync(FUNCTIONS, functionLines(functions, Object.keys(counts.scenes)));
}

const SEPARATOR = ' · ';

/** `*` are all scenes, `-plain` is all but that one. */
export function functionLines(functions: TurnRecord['functions'], all: readonly string[]): string {
  const lines = [...functions].map(([name, scenes]) => `${name}${SEPARATOR}${shortest(scenes, all)}\n`);
  return lines.join('');
}

function shortest(scenes: readonly string[], all: readonly string[]): string {
  const others = all.filter((scene) => !scenes.includes(scene));
  if (others.length >= scenes.length) return scenes.join(' ');
  return ['*', ...others.map((scene) => `-${scene}`)].join(' ');
}

export function parseFunctions(text: string, all: readonly string[]): TurnRecord['functions'] {
  const functions = new Map<string, string[]>();
  for (const line of text.split('\n').filter(Boolean)) {
    const [name = '', words = ''] = line.split(SEPARATOR);
    const given = words.split(' ');
    const isAll = given[0] === '*';
    functions.set(name, isAll ? all.filter((scene) => !given.includes(`-${scene}`)) : given);
  }
  return functions;
}
