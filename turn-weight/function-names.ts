import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import type { Ran } from './coverage.ts';

const ROOT = path.dirname(import.meta.dirname);

interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

interface Named {
  start: number;
  end: number;
  name: string;
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const CLASSES = new Set(['ClassDeclaration', 'ClassExpression']);
const known = new Map<string, Named[]>();

/**
 * The name of a function with those around it, such as `createWriteQueue.runBatch.some()`: the last is what was given to
 * `some`. It does not change when other lines of the file do.
 */
export function nameOf({ file, start, end, name }: Ran): string {
  const functions = functionsIn(file);
  // Functions that return functions may end at one place. V8 counts a method from its name on, and ends an arrow before `as`.
  const ending = functions.filter((each) => each.end === end);
  const same = ending.length > 0 ? ending : functions.filter((each) => each.start === start);
  const [nearest] = same.toSorted((a, b) => Math.abs(a.start - start) - Math.abs(b.start - start));
  if (nearest) return nearest.name;
  // What V8 makes itself: the fields of a class, or a constructor that is not written down.
  const around = functions.findLast((each) => each.start <= start && end <= each.end);
  return [around?.name, name || '(module)'].filter(Boolean).join('.');
}

/** Outer ones before those in them. */
function functionsIn(file: string): Named[] {
  const parsed = known.get(file);
  if (parsed) return parsed;
  const named: Named[] = [];
  const counts = new Map<string, number>();

  function visit(node: Node, around: string, hint: string): void {
    let inside = around;
    if (FUNCTIONS.has(node.type) || CLASSES.has(node.type)) {
      const own = ownName(node) || hint || 'anonymous';
      const whole = around === '' ? own : `${around}.${own}`;
      const count = (counts.get(whole) ?? 0) + 1;
      counts.set(whole, count);
      inside = count === 1 ? whole : `${whole}~${count}`;
      named.push({ start: node.start, end: node.end, name: inside });
    }
    for (const [field, value] of Object.entries(node)) {
      const children = Array.isArray(value) ? value : [value];
      for (const child of children) if (isNode(child)) visit(child, inside, hintFor(node, field));
    }
  }

  visit(parse(file), '', '');
  known.set(file, named);
  return named;
}

/** Texts of strict TypeScript, as Node runs them: positions are those of the file. */
function parse(file: string): Node {
  const place = file.startsWith('packages/') ? file : path.join('src', file);
  return parseAst(readFileSync(path.join(ROOT, place), 'utf8'), { lang: 'ts' }) as unknown as Node;
}

function ownName({ id }: Node): string {
  return isNode(id) ? `${id['name']}` : '';
}

/** What a function is called that is the value of this field. */
function hintFor(node: Node, field: string): string {
  if (node.type === 'CallExpression' && field === 'arguments') return `${calleeOf(node)}()`;
  if (node.type === 'NewExpression' && field === 'arguments') return `new ${calleeOf(node)}()`;
  if (node.type === 'VariableDeclarator' && field === 'init') return textOf(node['id']);
  if (node.type === 'AssignmentExpression' && field === 'right') return textOf(node['left']);
  if (field === 'value' && isNode(node['key'])) return textOf(node['key']);
  return '';
}

function calleeOf({ callee }: Node): string {
  return textOf(callee);
}

function textOf(node: unknown): string {
  if (!isNode(node)) return '';
  if (node.type === 'MemberExpression') return textOf(node['property']);
  if (node.type === 'PrivateIdentifier') return `#${node['name']}`;
  const text = node['name'] ?? node['value'];
  return typeof text === 'string' || typeof text === 'number' ? `${text}` : '';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof Object(value).type === 'string';
}

/** Names of types that these files import, each with the file that it is imported from. */
export function typesImportedBy(files: readonly string[]): Set<string> {
  const types = new Set<string>();
  for (const file of files)
    for (const node of parse(file)['body'] as Node[]) {
      if (node.type !== 'ImportDeclaration') continue;
      for (const specifier of node['specifiers'] as Node[])
        if (node['importKind'] === 'type' || specifier['importKind'] === 'type')
          types.add(typeName(file, node, specifier));
    }
  return types;
}

function typeName(file: string, { source }: Node, specifier: Node): string {
  const from = `${(source as Node)['value']}`;
  const place = from.startsWith('.') ? path.posix.join(path.posix.dirname(file), from) : from;
  return `${place}:${textOf(specifier['imported'] ?? specifier['local'])}`;
}
