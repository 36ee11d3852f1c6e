import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { API, type Checker, type Project, type Type } from 'typescript/unstable/sync';
import { isVariableStatement } from 'typescript/unstable/ast/is';

/**
 * Writes the comments of fields into the declarations in `dist`: TypeScript 7 leaves those of inferred types out, and the types of
 * settings are inferred from schemas. Each comment stands on the line of its field, so that the maps of the declarations hold.
 */
const ROOT = path.dirname(import.meta.dirname);
const SRC = path.join(ROOT, 'src');
const FIELD = /^(\s+)(?:readonly )?["']?([\w$-]+)["']?\??: /;

/** Comments by the path of a field: `Limits.maxSteps`. Variants of a union have one each, in their order. */
type Comments = Map<string, string[]>;

/** Returns how many comments it has written. */
function keepComments(config: string, dist: string): number {
  const api = new API();
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    if (!project) throw new Error(`there is no project at ${config}`);
    return project.program.getSourceFileNames().reduce((kept, file) => kept + keepIn(project, file, dist), 0);
  } finally {
    api.close();
  }
}

function keepIn(project: Project, file: string, dist: string): number {
  const target = path.join(dist, path.relative(SRC, file).replace(/\.ts$/, '.d.ts'));
  if (!file.startsWith(`${SRC}/`) || !existsSync(target)) return 0;
  const declared = readFileSync(target, 'utf8');
  if (!declared.includes('z.Zod')) return 0;
  const { text, kept } = withComments(declared, commentsIn(project, file));
  writeFileSync(target, text);
  return kept;
}

/** Of the fields of all constants of a file. */
function commentsIn({ program, checker }: Project, file: string): Comments {
  const comments: Comments = new Map();
  for (const statement of program.getSourceFile(file)?.statements ?? []) {
    if (!isVariableStatement(statement)) continue;
    for (const { name } of statement.declarationList.declarations) {
      const symbol = checker.getSymbolAtLocation(name);
      const type = symbol && checker.getTypeOfSymbol(symbol);
      if (type) collect(type, symbol.name, { checker, comments, within: [] });
    }
  }
  return comments;
}

interface Walk {
  checker: Checker;
  comments: Comments;
  /** Types that contain the present one: a schema may contain itself. */
  within: readonly number[];
}

function collect(type: Type, at: string, walk: Walk): void {
  const { checker, comments, within } = walk;
  if (within.includes(type.id)) return;
  const inner = { ...walk, within: [...within, type.id] };
  if (type.isTypeReference()) {
    for (const given of checker.getTypeArguments(type)) collect(given, at, inner);
    return;
  }
  if (!type.isObjectType() || !type.getSymbol()?.name.startsWith('__')) return;
  for (const property of checker.getPropertiesOfType(type)) {
    const place = `${at}.${property.name}`;
    const comment = property
      .getDocumentationComment(checker)
      .trim()
      .replaceAll(/\s*\n\s*/g, ' ');
    comments.set(place, [...(comments.get(place) ?? []), comment]);
    const own = checker.getTypeOfSymbol(property);
    if (own) collect(own, place, inner);
  }
}

function withComments(declared: string, comments: Comments): { text: string; kept: number } {
  let kept = 0;
  const seen = new Map<string, number>();
  let open: { indent: number; place: string }[] = [];
  const text = declared
    .split('\n')
    .map((line) => {
      const constant = /^(?:export )?declare const (\w+):/.exec(line)?.[1];
      if (constant !== undefined) open = [{ indent: 0, place: constant }];
      else if (/^\w/.test(line)) open = [];
      const [, spaces = '', name = ''] = FIELD.exec(line) ?? [];
      open = open.filter(({ indent }) => indent < spaces.length || name === '');
      const owner = open.at(-1);
      if (!owner || name === '') return line;
      const place = `${owner.place}.${name}`;
      open.push({ indent: spaces.length, place });
      const nth = seen.get(place) ?? 0;
      seen.set(place, nth + 1);
      const comment = comments.get(place)?.at(nth) ?? '';
      if (comment === '') return line;
      kept += 1;
      return `${spaces}/** ${comment} */ ${line.trimStart()}`;
    })
    .join('\n');
  return { text, kept };
}

const kept = keepComments(path.join(ROOT, 'tsconfig.build.json'), process.argv[2] ?? path.join(ROOT, 'dist'));
console.log(`${kept} comments of fields are in the declarations`);
