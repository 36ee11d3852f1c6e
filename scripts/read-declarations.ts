import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  API,
  type Checker,
  SignatureKind,
  type Symbol,
  SymbolFlags,
  type Type,
} from 'typescript/unstable/sync';
import { ERROR_CODES, policyOf } from '../src/base/errors.ts';
import { KINDS } from '../src/events/kinds.ts';
import { ROOT } from './packed.ts';

/** A field as the reference shows it. */
export interface Field {
  name: string;
  type: string;
  /** The last sentence of its text, if that names the default. */
  byDefault: string;
  text: string;
}

export interface Section {
  title: string;
  /** What the whole is for. */
  text: string;
  fields: readonly Field[];
}

/** The kinds of declarations that get a page each. */
export interface Declarations {
  settings: Section[];
  options: Section[];
  methods: Section[];
  events: Section[];
  notes: Section[];
  evals: Section[];
}

/** The modules whose exports are read. Of two exports of one name the first counts. */
const MODULES = [
  'src/index.ts',
  'src/http/api/index.ts',
  'src/events/live-notes.ts',
  'src/providers/reply-limits.ts',
  'src/providers/script.ts',
  'src/tools/tool.ts',
  'packages/nostr/src/index.ts',
  'packages/client/src/index.ts',
  'packages/evals/src/index.ts',
];

/** Types whose fields are options of code, in the order of the page. */
const OPTIONS = [
  'TroupeOptions',
  'AppOptions',
  'NewMessage',
  'AskOptions',
  'Answer',
  'ToolDefinition',
  'ToolContext',
  'StatusOptions',
  'TracingOptions',
  'ReplyLimits',
];
/** Notes of running turns. */
const NOTES = [
  'TextNote',
  'ReasoningNote',
  'ArgumentsNote',
  'DroppedNote',
  'CalledNote',
  'ProgressNote',
  'ResultNote',
  'VoidNote',
  'StateNote',
];
/** Types of `@troupe/evals` whose fields are told beside the matchers. */
const EVALS = [
  'Cause',
  'CallOutcome',
  'AskedWith',
  'Often',
  'Within',
  'Bounds',
  'PlayOptions',
  'EvalSettings',
  'SimulatedUserSettings',
  'ScoreSettings',
  'JudgeSettings',
  'Policy',
];
/** A type longer than this is told by its kind alone. */
const MAX_TYPE = 90;

/** Reads them with the compiler, as editors do. */
export function readDeclarations(): Declarations {
  const cache = path.join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(path.join(cache, 'reference-'));
  const config = path.join(folder, 'tsconfig.json');
  const files = MODULES.map((file) => path.join(ROOT, file));
  writeFileSync(config, JSON.stringify({ extends: path.join(ROOT, 'tsconfig.json'), include: [], files }));
  const api = new API();
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    if (!project) throw new Error(`there is no project at ${config}`);
    const exported = new Map<string, Symbol>();
    for (const file of files) {
      const source = project.program.getSourceFile(file);
      const module = source && project.checker.getSymbolAtLocation(source);
      if (!module) throw new Error(`${file} is not a module of the project`);
      for (const symbol of project.checker.getExportsOfModule(module))
        if (!exported.has(symbol.name))
          exported.set(symbol.name, isAlias(symbol) ? project.checker.getAliasedSymbol(symbol) : symbol);
    }
    return new Reader(project.checker, exported).all();
  } finally {
    api.close();
    rmSync(folder, { recursive: true });
  }
}

class Reader {
  readonly #checker: Checker;
  readonly #exported: ReadonlyMap<string, Symbol>;

  constructor(checker: Checker, exported: ReadonlyMap<string, Symbol>) {
    this.#checker = checker;
    this.#exported = exported;
  }

  all(): Declarations {
    return {
      settings: this.#settings(),
      options: [...OPTIONS.flatMap((name) => this.#options(name)), ...this.#scripts()],
      methods: [...this.#methods('Troupe'), ...this.#methods('TroupeClient')],
      events: this.#events(),
      notes: this.#notes(),
      evals: [...this.#methods('RunMatchers'), ...EVALS.flatMap((name) => this.#options(name))],
    };
  }

  #named(name: string): Symbol {
    const symbol = this.#exported.get(name);
    if (!symbol) throw new Error(`nothing exports ${name}`);
    return symbol;
  }

  #options(name: string): Section[] {
    const symbol = this.#named(name);
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    return [{ title: name, text: this.#text(symbol), fields: this.#fields(type) }];
  }

  #methods(name: string): Section[] {
    const type = this.#checker.getDeclaredTypeOfSymbol(this.#named(name));
    const fields = this.#checker.getPropertiesOfType(type).filter(({ name: own }) => !own.startsWith('__'));
    return [{ title: name, text: '', fields: fields.map((property) => this.#method(property)) }];
  }

  #method(property: Symbol): Field {
    const field = this.#field(property);
    const type = this.#checker.getTypeOfSymbol(property);
    const [signature] = type ? this.#checker.getSignaturesOfType(type, SignatureKind.Call) : [];
    if (!signature) return field;
    const parameters = signature.getParameters().map(({ name }) => name);
    return { ...field, name: `${field.name}(${parameters.join(', ')})`, type: '' };
  }

  /** The top, each block by its path, and an agent with what all providers take and what each takes beside it. */
  #settings(): Section[] {
    const top = this.#checker.getDeclaredTypeOfSymbol(this.#named('TroupeInput'));
    const agent = this.#checker.getDeclaredTypeOfSymbol(this.#named('AgentBase'));
    const sections: Section[] = [
      { title: 'The company', text: '', fields: this.#fields(top) },
      { title: '`agents[]`: every agent', text: '', fields: this.#fields(agent) },
    ];
    this.#providers(sections, new Set(this.#checker.getPropertiesOfType(agent).map(({ name }) => name)));
    for (const property of this.#checker.getPropertiesOfType(top))
      if (!['agents', 'templates', 'tools', 'providers', 'app'].includes(property.name))
        this.#blocks(property, property.name, sections);
    const nostr = this.#checker.getDeclaredTypeOfSymbol(this.#named('NostrInput'));
    sections.push({ title: '`nostr`', text: '', fields: this.#fields(nostr) });
    for (const property of this.#checker.getPropertiesOfType(nostr))
      this.#blocks(property, `nostr.${property.name}`, sections);
    return sections;
  }

  #providers(sections: Section[], common: ReadonlySet<string>): void {
    const input = this.#checker.getDeclaredTypeOfSymbol(this.#named('AgentInput'));
    const variants = input.isUnionType() ? (input.getTypes() ?? []) : [input];
    for (const variant of variants) {
      const properties = this.#checker.getPropertiesOfType(variant);
      const provider = properties.find(({ name }) => name === 'provider');
      if (!provider) continue;
      const name = this.#typeText(provider).replaceAll("'", '').replaceAll('"', '');
      const own = properties.filter((each) => !common.has(each.name) && each.name !== 'provider');
      const fields = own.map((property) => this.#field(property)).filter(({ type }) => type !== 'never');
      sections.push({ title: `\`agents[]\` with \`provider: '${name}'\``, text: '', fields });
    }
  }

  #blocks(property: Symbol, at: string, sections: Section[]): void {
    const whole = this.#checker.getTypeOfSymbol(property);
    for (const { type, suffix } of whole ? this.#objects(whole) : []) {
      const fields = this.#fields(type);
      if (fields.length === 0) continue;
      const path = at + suffix;
      addTo(sections, { title: `\`${path}\``, text: '', fields });
      for (const inner of this.#checker.getPropertiesOfType(type))
        this.#blocks(inner, `${path}.${inner.name}`, sections);
    }
  }

  /** The objects that a setting is made of, through lists and records; of other types none. */
  #objects(type: Type, suffix = ''): { type: Type; suffix: string }[] {
    if (type.isUnionType()) return (type.getTypes() ?? []).flatMap((part) => this.#objects(part, suffix));
    if (!type.isObjectType() && !type.isIntersectionType()) return [];
    if (this.#checker.isArrayLikeType(type)) {
      const [item] = type.isTypeReference() ? this.#checker.getTypeArguments(type) : [];
      return item ? this.#objects(item, `${suffix}[]`) : [];
    }
    const [index] = this.#checker.getIndexInfosOfType(type);
    if (index) return this.#objects(index.valueType, `${suffix}.NAME`);
    const isFunction = this.#checker.getSignaturesOfType(type, SignatureKind.Call).length > 0;
    const isOwn = this.#checker.getPropertiesOfType(type).every(isOurs);
    return isFunction || !isOwn ? [] : [{ type, suffix }];
  }

  #events(): Section[] {
    const texts = textsAbove('src/events', /export const (\w+Body)\b/);
    const all = this.#checker.getDeclaredTypeOfSymbol(this.#named('Event'));
    const members = new Map<string, Type>();
    for (const member of all.isUnionType() ? (all.getTypes() ?? []) : []) {
      const properties = this.#checker.getPropertiesOfType(member);
      const kind = properties.find(({ name }) => name === 'kind');
      const body = properties.find(({ name }) => name === 'body');
      const type = body && this.#checker.getTypeOfSymbol(body);
      if (kind && type) members.set(this.#typeText(kind).replaceAll(/["']/g, ''), type);
    }
    return Object.entries(KINDS).map(([kind, { body }]) => {
      const type = members.get(kind);
      return { title: `\`${kind}\``, text: texts.get(body) ?? '', fields: type ? this.#fields(type) : [] };
    });
  }

  /** The rules of a script, with their parts, and what a rule in code is asked. */
  #scripts(): Section[] {
    const sections = this.#options('ScriptRuleInput');
    const rule = this.#checker.getDeclaredTypeOfSymbol(this.#named('ScriptRuleInput'));
    for (const property of this.#checker.getPropertiesOfType(rule))
      this.#blocks(property, `ScriptRuleInput.${property.name}`, sections);
    return [...sections, ...this.#options('ScriptAsked')];
  }

  /** The place of a note, and each kind of note with the fields that it has beside its place. */
  #notes(): Section[] {
    const place = this.#options('LivePlace');
    const known = new Set(['type', ...place.flatMap(({ fields }) => fields.map(({ name }) => name))]);
    const notes = NOTES.flatMap((name) => this.#options(name)).map(({ text, fields }) => {
      const kind = fields.find(({ name }) => name === 'type')?.type.replaceAll("'", '') ?? '';
      return { title: `\`${kind}\``, text, fields: fields.filter(({ name }) => !known.has(name)) };
    });
    return [...place, ...notes];
  }

  #fields(type: Type): Field[] {
    return this.#checker.getPropertiesOfType(type).map((property) => this.#field(property));
  }

  #field(property: Symbol): Field {
    const text = this.#text(property);
    const [, before, byDefault] = /^([^]*?)\s*Default:? ((?:[^.]|\.\d|\.\w|`[^`]*`)+)\.?$/.exec(text) ?? [];
    return {
      name: property.name,
      type: this.#typeText(property),
      text: before ?? text,
      byDefault: byDefault ?? '',
    };
  }

  #text(symbol: Symbol): string {
    // Without examples.
    return (
      symbol
        .getDocumentationComment(this.#checker)
        .split(/\n\s*\n {4}/, 1)[0]
        ?.trim() ?? ''
    );
  }

  #typeText(property: Symbol): string {
    const type = this.#checker.getTypeOfSymbol(property);
    if (!type) return '';
    const text = this.#checker
      .typeToString(type)
      .replaceAll(' | undefined', '')
      .replaceAll('undefined | ', '')
      .replaceAll('readonly ', '')
      .replaceAll('"', "'");
    if (text.startsWith('string & ')) return 'string';
    if (text.length <= MAX_TYPE && !/[{<]/.test(text)) return text;
    const kinds = [
      text.includes('=>') && 'function',
      text.endsWith('[]') ? 'list' : /[{<]/.test(text) && 'object',
    ];
    return kinds.filter(Boolean).join(' or ') || text.slice(0, MAX_TYPE);
  }
}

/** Variants of one block share its section. */
function addTo(sections: Section[], { title, text, fields }: Section): void {
  const at = sections.findIndex((section) => section.title === title);
  const known = sections[at];
  if (!known) return void sections.push({ title, text, fields });
  const merged = new Map(known.fields.map((field) => [field.name, field]));
  for (const field of fields) {
    const before = merged.get(field.name);
    const types = new Set([...(before?.type.split(' | ') ?? []), ...field.type.split(' | ')]);
    merged.set(field.name, { ...field, ...before, type: [...types].join(' | ') });
  }
  sections[at] = { title, text, fields: [...merged.values()] };
}

const isAlias = (symbol: Symbol) => (symbol.flags & SymbolFlags.Alias) !== 0;
const isOurs = (symbol: Symbol) =>
  symbol.declarations.some(({ path: file }) =>
    ['src', 'packages'].some((folder) => file.toLowerCase().startsWith(`${ROOT}/${folder}/`.toLowerCase())),
  );

/** The texts above the declarations of a folder's files that match, by the name in the match. */
function textsAbove(folder: string, declaration: RegExp): Map<string, string> {
  const texts = new Map<string, string>();
  for (const name of readdirSync(path.join(ROOT, folder)).filter((file) => file.endsWith('.ts'))) {
    const source = readFileSync(path.join(ROOT, folder, name), 'utf8');
    const found = source.matchAll(new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n${declaration.source}`, 'g'));
    for (const [, text = '', name = ''] of found) texts.set(name, plain(text));
  }
  return texts;
}

const plain = (comment: string) => comment.replaceAll(/\s*\n\s*\*\s?/g, ' ').trim();

/** The texts above the commands of people, by their names. */
export function readCommands(): Map<string, string> {
  const source = readFileSync(path.join(ROOT, 'src/events/command.ts'), 'utf8');
  const found = source.matchAll(
    /\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}z\.strictObject\(\{\s*command: z\.literal\('(\w+)'\)/g,
  );
  return new Map([...found].map(([, text = '', name = '']) => [name, plain(text)]));
}

export interface DocumentedError {
  code: string;
  policy: string;
  text: string;
}

/** Every error code with the text that stands above it. */
export function readErrors(): DocumentedError[] {
  const source = readFileSync(path.join(ROOT, 'src/base/errors.ts'), 'utf8');
  const texts = new Map(
    [...source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\n {2}(\w+): '/g)].map(([, text = '', name = '']) => [
      name,
      plain(text),
    ]),
  );
  return ERROR_CODES.map((code) => {
    const text = texts.get(code);
    if (text === undefined) throw new Error(`src/base/errors.ts says nothing of ${code}`);
    return { code, policy: policyOf(code), text };
  });
}
