import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'vite';

/** A regular expression in `src`: a literal, or one composed with `new RegExp`. */
export interface Expression {
  /** `file:line` */
  where: string;
  source: string;
  flags: string;
}

/** A place where an expression is composed. Its value is known only at run time. */
export interface ComposedPlace {
  where: string;
  code: string;
}

export const SRC = path.join(import.meta.dirname, '../../src');

export function literalsIn(folder = SRC): Expression[] {
  return nodesIn(folder, ({ regex }, where) =>
    regex ? { where, source: regex.pattern, flags: regex.flags } : null,
  );
}

/** Calls of `RegExp`, and of methods that build an expression from a string. */
export function composedPlacesIn(folder = SRC): ComposedPlace[] {
  return nodesIn(folder, (node, where, code) => (composes(node) ? { where, code } : null));
}

interface Node {
  type?: string;
  start?: number;
  end?: number;
  regex?: { pattern: string; flags: string };
  callee?: { type?: string; name?: string; property?: { name?: string } };
  arguments?: readonly Node[];
}

const TAKE_PATTERNS = new Set(['match', 'matchAll', 'search']);
const TEXTS = new Set(['TemplateLiteral', 'BinaryExpression']);

function composes({ type, callee, arguments: given = [] }: Node): boolean {
  if (type !== 'NewExpression' && type !== 'CallExpression') return false;
  if (callee?.name === 'RegExp') return true;
  const [first] = given;
  const isText = TEXTS.has(first?.type ?? '') || (first?.type === 'Literal' && first.regex === undefined);
  return TAKE_PATTERNS.has(callee?.property?.name ?? '') && isText;
}

function nodesIn<T>(folder: string, take: (node: Node, where: string, code: string) => T | null): T[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  return names.sort().flatMap((name) => {
    const text = readFileSync(path.join(folder, name), 'utf8');
    const found: T[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return;
      const { start = 0, end = start } = node as Node;
      const taken = take(node as Node, `${name}:${lineAt(text, start)}`, text.slice(start, end));
      if (taken !== null) found.push(taken);
      for (const child of Object.values(node)) visit(child);
    };
    visit(parseSync(name, text).program);
    return found;
  });
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}
