import { whole, capped, withoutEnd } from '../text/cut-text.ts';
import type { ToolCall, ToolResultBody } from '../../events/index.ts';

/** Names in a text. Paths and ids are found anywhere, names of code only in speech. */
interface Named {
  paths: string[];
  ids: string[];
  names: string[];
}

/** Maximum characters of a word. Longer ones are data and not searched, so that no text makes a search slow. */
const MAX_WORD = 256;
const WORD = /[^\s"'`<>()[\]{},;|=*]+/g;
const NOTABLE = /[/\\_@#.\d]|[a-z][A-Z]|[A-Z]{3}/;

const EXTENSIONS =
  'tsx?|[cm]?[jt]s|jsx|jsonl?|ya?ml|toml|ini|cfg|conf|env|lock|mdx?|txt|rst|csv|tsv|sql|html?|s?css|less|xml|svg|py|ipynb|rs|go|java|kts?|swift|scala|[ch]|cc|[ch]pp|cs|rb|php|pl|lua|sh|bash|zsh|fish|ps1|bat|vue|svelte|proto|graphql|tf|gradle|properties|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|webp|zip|tar|gz|db|sqlite|diff|patch';
const FILE_NAME = new RegExp(String.raw`^[\w@.+-]*[\w-]\.(?:${EXTENSIONS})$`, 'i');
const LAST_PART = /(?<![^/\\])[^/\\]*$/;
const EXTENSION = /^[^/\\]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,7}$/;
const ROOTED = /^(?:\.{1,2}|~|[A-Za-z]:)?[/\\][\w.@~+-]+[/\\]/;
const RELATIVE = /^\.{1,2}\/[\w.@~+-]+/;
/** What search tools print after a path: a line number, or the line itself without a space before it. */
const AFTER_EXTENSION = /(\.[A-Za-z][A-Za-z0-9]{0,7}):.*$|(\.[A-Za-z][A-Za-z0-9]{0,7}:.*[\n\r\u2028\u2029])/g;
const PATH_SIGNS = /^[\p{L}\p{N}_.@~+\-/\\:%$#!&]+$/u;

const ID_FORMS = [
  /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
  /^[0-9A-HJKMNP-TV-Z]{26}$/,
  /^(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}$/i,
  /^n(?:pub|profile|event|ote|addr)1[0-9a-z]{20,}$/,
  /^#?[A-Z]{1,6}-?\d{3,}$/,
  /^[A-Z][A-Z0-9]{1,9}-\d{1,8}$/,
  /^(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*\d[A-Z0-9]*\d)[A-Z0-9]{5,40}$/,
  /^#\d{1,9}$/,
  /^\d{6,30}$/,
  /^[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*[_-]\d{3,}$/,
  /^[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+$/,
];
const NAME_FORMS = [
  /^[a-z$_][a-z0-9]*[A-Z][A-Za-z0-9]*$/,
  /^[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*$/,
  /^_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+$/,
  /^[A-Za-z_$][\w$]+(?:(?:\.|::|#)[A-Za-z_$][\w$]+)+$/,
];
const IN_BACKTICKS = /`([^`\s]{2,80})`/g;
const NAME_IN_BACKTICKS = /^[@$\w][\w$.:#@/-]*(?:\(\))?$/;
/** The value of an id field in JSON, also in JSON that is a string in JSON. */
const ID_FIELD =
  /(?:_?id|Id|ID|_code|Code|_number|Number|_key|_ref|sku|uuid)\\{0,3}"\s{0,2}:\s{0,2}\\{0,3}"?([^"\\\s,}\]]{3,80})/g;
const LOOKS_LIKE_JSON = /^\s{0,20}[{[]/;
const LINE_SIGNS = new Set(['n', 'r', 't']);
const URL = /^https?:\/\/[^\s]{4,}$/;
const EMPTY_VALUES = new Set(['null', 'true', 'false', 'undefined', 'None']);

export function findWords(written: string, spoken: boolean): Named {
  const text = LOOKS_LIKE_JSON.test(written) ? unescaped(written) : written;
  const found: Named = { paths: [], ids: [], names: [] };
  for (const [raw] of text.matchAll(WORD)) {
    if (raw.length > MAX_WORD || !NOTABLE.test(raw)) continue;
    // A range of commits contains two names.
    for (const word of raw.includes('/') ? [raw] : raw.split('..')) place(word, spoken, found);
  }
  found.ids.push(...idsInFields(text));
  if (spoken) found.names.push(...namesInBackticks(text));
  return found;
}

function idsInFields(text: string): string[] {
  const values = Array.from(text.matchAll(ID_FIELD), ([, value = '']) => value);
  return values.filter(
    (value) => !EMPTY_VALUES.has(value) && !/^\d{1,3}$/.test(value) && !value.includes('${'),
  );
}

function namesInBackticks(text: string): string[] {
  const names = Array.from(text.matchAll(IN_BACKTICKS), ([, name = '']) => name);
  return names.filter((name) => /[A-Za-z]{2}/.test(name) && NAME_IN_BACKTICKS.test(name)).map(whole);
}

/** JSON with its escapes resolved. Otherwise the `n` of an escaped line end would be read as part of the following path. */
function unescaped(json: string): string {
  if (!json.includes('\\')) return json;
  return json.replace(/\\(.)/g, (_, sign: string) => (LINE_SIGNS.has(sign) ? ' ' : sign));
}

function place(raw: string, spoken: boolean, found: Named): void {
  const word = raw.replace(/[.,:!?*_~…。，\\]{1,8}$/, '').replace(/^(?:file:\/\/|\*{1,3}|@(?=\/))/, '');
  if (word.length < 3) return;
  if (word.includes('://')) {
    if (spoken && URL.test(word)) found.ids.push(word);
    return;
  }
  const path = asPath(word);
  if (path !== null) found.paths.push(path);
  else if (isId(word)) found.ids.push(word);
  else if (spoken && NAME_FORMS.some((form) => form.test(word))) found.names.push(word);
}

function isId(word: string): boolean {
  return ID_FORMS.some((form) => form.test(word)) && !/^\d{4}-\d\d/.test(word);
}

/** The path in a word, without a line number. Null if it is not a path. */
function asPath(word: string): string | null {
  const path = word.includes(':') ? word.replace(AFTER_EXTENSION, '$1$2') : word;
  if (path.length > MAX_WORD || path.includes('://')) return null;
  if (!/[/\\]/.test(path)) return FILE_NAME.test(path) ? path : null;
  if (!PATH_SIGNS.test(path) || /\\[nrtx"]/.test(path)) return null;
  const last = LAST_PART.exec(path)?.[0] ?? '';
  const isPath = EXTENSION.test(last) || ((ROOTED.test(path) || RELATIVE.test(path)) && !/\\\\/.test(path));
  return isPath && /[A-Za-z]/.test(path) ? path : null;
}

interface Files {
  read: string[];
  modified: string[];
}

const WRITES =
  /(?:^|[_-])(?:write|edit|multi_?edit|patch|apply|create|str_?replace|replace|insert|append|save|delete|remove|rename|move|copy|upload)|(?:Write|Edit|Patch|Create|Replace|Delete|Rename|Move)/;
/** Fields that name a file that is read, even in a tool that writes files. */
const READ_FIELD = /^(?:source|src|from|input|cwd|dir|directory|workdir|root)$/i;
const PATH_FIELD =
  /^(?:.*_)?(?:path|paths|file|files|file_?name|target|destination|dest|to|uri)$|(?:Path|File|FileName|Paths|Files)$/i;
const PATCH_FIELD = /^(?:patch|diff|input|patchText|changes)$/i;

const CHANGING_COMMAND =
  /^(?:sudo )?(?:rm|mv|cp|touch|tee|truncate|chmod|ln|sed -i|perl -\w*i|git (?:mv|rm|restore|checkout (?:\S+ )?--))\b/;
const PATCHED_FILE = /^(?:\*\*\* (?:Update|Add|Delete|Move to)(?: File)?: |\+\+\+ (?:b\/)?)(\S{1,256})/;

/** The files that a call reads or changes, by its name and arguments. */
export function filesOf(call: ToolCall): Files {
  const { name } = call;
  const files: Files = { read: [], modified: [] };
  const writes = WRITES.test(name);
  for (const [field, value] of textsOf(call)) {
    if (isShell(name) && isCommandField(field)) ofCommand(value, files);
    else if (writes && PATCH_FIELD.test(field) && value.includes('\n'))
      for (const file of patched(value)) files.modified.push(file);
    else if (isPathValue(field, value)) {
      (writes && !READ_FIELD.test(field) ? files.modified : files.read).push(value);
    }
  }
  return { read: files.read.filter(isFile), modified: files.modified.filter(isFile) };
}

/** Whether a path names a file, and not a device or a directory. */
function isFile(path: string): boolean {
  return !/^\/(?:dev|proc|sys)\//.test(path) && !/[/\\]$/.test(path);
}

/** Whether a value is a path. A path field may hold any path, another field only an unmistakable one. */
function isPathValue(field: string, value: string): boolean {
  if (value.length > 256 || value.length < 2 || /[\n"<>|*?{}$]/.test(value)) return false;
  if (PATH_FIELD.test(field))
    return /[/\\.]/.test(value) && /[\p{L}\p{N}]/u.test(value) && !value.includes('://');
  return /[/\\]/.test(value) && !/\s/.test(value) && asPath(value) === value;
}

/** Commands that take a program or a pattern as an argument. */
const SCRIPTED = /(?:^| )(?:sed|perl|awk|e?grep|rg|ag|jq|node|python3?)(?: |$)/;

/** Adds the files of a command line. The first word of each command decides if it changes them. Targets of `>` are modified. */
function ofCommand(line: string, files: Files): void {
  for (const words of commandsOf(line)) {
    const command = words.map(({ text }) => text).join(' ');
    const changes = CHANGING_COMMAND.test(command);
    const isScripted = SCRIPTED.test(command);
    const script = isScripted ? scriptAt(words) : -1;
    words.forEach(({ text, isTarget, isQuoted }, index) => {
      const isProgram = isScripted && (isQuoted || index === script);
      const path = isProgram || text.startsWith('-') || /\s/.test(text) ? null : asPath(text);
      if (path === null) return;
      // A path without an extension is a directory or a module.
      if (!isTarget && !(changes && index > 0)) files.read.push(path);
      else if (EXTENSION.test(LAST_PART.exec(path)?.[0] ?? '')) files.modified.push(path);
    });
  }
}

/** Index of the program, if it is not quoted: the first argument that is not an option. */
function scriptAt(words: readonly ShellWord[]): number {
  const isQuoted = words.some((word) => word.isQuoted && word.text !== '');
  return isQuoted ? -1 : words.findIndex(({ text }, at) => at > 0 && text !== '' && !text.startsWith('-'));
}

function patched(patch: string): string[] {
  return patch.split('\n').flatMap((line) => {
    const path = PATCHED_FILE.exec(line)?.[1];
    return path === undefined || path === '/dev/null' ? [] : [path];
  });
}

/** A line of output that reports an error. Code that handles errors does not match. */
const ERROR_LINE =
  /^\W{0,4}(?:[\w./@:-]{1,80}[(:\s][^A-Za-z]{0,24})?(?:(?:[A-Za-z]\w{0,60})?(?:Error|Exception)(?: \[\w+\])?:|(?:error|fatal|panic|fatal error)\b(?:\[?[ \w]{0,10}\]?): |(?:ERROR|FATAL|FAILED|Failed)\b(?:\[?[ \w]{0,10}\]?):? |npm (?:error|ERR!) |✖|✗|×|FAIL\b|Uncaught |Unhandled )/;

/** Lines that report no error of their own: comments in code, and what shells and package managers print around any failure. */
const NO_REPORT =
  /^Command (?:exited with code \d+|aborted)$|^(?:\/\/|\/\*|\*|#|<!--|--\s)|^npm (?:error|ERR!) (?:code|path|workspace|location|command|errno|syscall|A complete log|Lifecycle script|This is probably|\s)/;
const CODE_ENDS = /[,;{(\\]$/;

/** Further words that report an error in the output of a failed call. */
const FAILURE_WORD =
  /error|fail|exception|denied|refused|not found|no such|cannot|can't|unable|invalid|timed? ?out|abort|missing|exited with/i;

const MAX_ERROR = 240;
/** Maximum errors taken from one result: the first errors of a compiler suffice. */
const MAX_PER_RESULT = 6;

/** Lines that report an error, of tracebacks, compilers and shells. Code that handles errors does not count. */
export function errorLines(text: string, max = MAX_PER_RESULT): string[] {
  const found = new Set<string>();
  for (const line of text.split('\n')) {
    if (line.length > 4_000 || found.size >= max) continue;
    const clean = line.trim();
    if (ERROR_LINE.test(clean) && !NO_REPORT.test(clean) && !CODE_ENDS.test(clean))
      found.add(capped(clean, MAX_ERROR));
  }
  return [...found];
}

/** The errors in a result: at least one line if it failed. Text read by a successful call counts only if it begins with one. */
export function errorsOf({ outcome, content }: ToolResultBody, call: ToolCall | null = null): string[] {
  const lines = errorLines(content);
  if (outcome === 'done') {
    const isOutput =
      call === null || !reads(call) || errorLines(content.trimStart().split('\n', 1).join('')).length > 0;
    return isOutput ? lines : [];
  }
  if (lines.length > 0) return lines;
  const all = content.split('\n').map((line) => line.trim());
  const line =
    all.find((each) => FAILURE_WORD.test(each) && !NO_REPORT.test(each)) ??
    all.findLast((each) => each !== '');
  return line === undefined || NO_REPORT.test(line) ? [] : [capped(line, MAX_ERROR)];
}

const READERS =
  /(?:^|[_-])(?:read|view|open|cat|fetch|search|grep|glob|find|list|ls|get|web)|Read|View|Fetch|Search|Grep|Glob|Find|List/;
const READING_COMMAND =
  /^(?:cat|head|tail|less|more|sed -n|grep|rg|ag|find|ls|awk|echo|wc|tree|git (?:diff|show|log|grep|blame|status))\b/;

/** Whether a call shows stored text, which may be code or an old log. */
function reads(call: ToolCall): boolean {
  if (!isShell(call.name)) return READERS.test(call.name);
  const parts = shellParts(call);
  return parts.length > 0 && parts.every((part) => READING_COMMAND.test(part));
}

const MAX_KEY = 160;
const PATH_NAMES = /path|file|name|uri|url/i;

/**
 * A key of what a call attempts, the same for each attempt: the first command of a shell line without its redirections, or
 * the tool and its file. A later success with the same key settles an error.
 */
export function attemptOf(call: ToolCall): string {
  if (isShell(call.name)) {
    const [command] = shellParts(call);
    if (command !== undefined) return capped(`${call.name} ${command}`, MAX_KEY);
  }
  const texts = textsOf(call);
  const file = texts.find(([field]) => PATH_NAMES.test(field))?.[1];
  return capped(`${call.name} ${file ?? texts.map(([, text]) => text).join(' ')}`, MAX_KEY);
}

/** Keys of the attempts that the success of a call settles. */
export function settledBy(call: ToolCall): string[] {
  if (!isShell(call.name)) return [attemptOf(call)];
  return shellParts(call).map((command) => capped(`${call.name} ${command}`, MAX_KEY));
}

const FIXED =
  /(?<![\p{L}])(?:fixed|resolved|solved|works? now|working now|no longer (?:fails?|happens|occurs)|passes|all pass(?:ing)?|behoben|gelöst|funktioniert jetzt|corrigée?s?|résolue?s?|corregid[oa]s?|resuelt[oa]s?|arreglad[oa]s?|corrigid[oa]s?|resolvid[oa]s?|risolt[oa]s?|corrett[oa]|исправлен[оаы]?|исправил[аи]?)(?![\p{L}])|修复了|已修复|解决了|修正しました|直りました|直した/iu;
const NOT_FIXED =
  /(?<![\p{L}])(?:not|n['’]t|never|nicht|pas|no|não|non|не|to be|should be|must be|needs?)(?![\p{L}])/iu;
const DISTINCT = /\d|[a-z][A-Z]|_|\.[a-z]{2,4}(?!\w)/;
const BETWEEN_NAMES = /[^\w./@-]+/;

/** Whether a sentence says that the error is fixed, and contains a word that distinguishes this error. */
export function saysFixed(sentence: string, error: string): boolean {
  if (!FIXED.test(sentence) || NOT_FIXED.test(sentence)) return false;
  const names = error
    .split(BETWEEN_NAMES)
    .filter((name) => DISTINCT.test(name))
    .map(lastPart)
    .filter((name) => name.length > 3);
  return names.some((name) => sentence.includes(name));
}

function lastPart(name: string): string {
  return withoutEnd(name, '.').split('/').at(-1) ?? '';
}

const SHELLS =
  /(?:^|[_-])(?:bash|sh|shell|exec|execute|terminal|command|run|cmd|powershell)(?:$|[_-])|Bash|Shell/i;
const SHELL_FIELD = /^(?:command|cmd|script|code|commands|input)$/i;
const MAX_COMMAND = 8_000;
const MAX_DEPTH = 4;

export function isShell(tool: string): boolean {
  return SHELLS.test(tool);
}

function isCommandField(field: string): boolean {
  return SHELL_FIELD.test(field);
}

/** The texts in a call's arguments with their field names. Texts in a list have the name of the list. */
function textsOf({ args }: ToolCall): [field: string, text: string][] {
  let root: unknown;
  try {
    root = JSON.parse(args);
  } catch {
    // Arguments that are not JSON have no fields.
    return [];
  }
  const fields: [string, string][] = [];
  const walk = (field: string, value: unknown, depth: number): void => {
    if (typeof value === 'string') fields.push([field, value]);
    else if (depth < MAX_DEPTH && Array.isArray(value))
      for (const item of value) walk(field, item, depth + 1);
    else if (depth < MAX_DEPTH && typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) walk(key, item, depth + 1);
    }
  };
  walk('', root, 0);
  return fields;
}

const HERE_DOCUMENT = /<<-?\s?['"]?(\w{1,40})['"]?/;
const TOKEN = /'[^']*'|"(?:\\.|[^"\\])*"|&&|\|\||[;|\n]|\d?>{1,2}(?:&\d)?|&\d?|[^\s"'`<>()&|;]+/g;

interface ShellWord {
  text: string;
  isQuoted: boolean;
  isTarget: boolean;
}

/** The commands of a line as words, without the text of here-documents. */
function commandsOf(line: string): ShellWord[][] {
  const commands: ShellWord[][] = [[]];
  let isTarget = false;
  const written = withoutHereDocuments(line.slice(0, MAX_COMMAND));
  for (const [token] of written.matchAll(TOKEN)) {
    if (/^(?:&&|\|\||[;|\n])$/.test(token)) commands.push([]);
    else if (/^\d?>/.test(token)) isTarget = !token.includes('&');
    else if (!token.startsWith('&')) {
      const isQuoted = /^['"]/.test(token);
      commands.at(-1)?.push({ text: isQuoted ? token.slice(1, -1) : token, isQuoted, isTarget });
      isTarget = false;
    }
  }
  return commands.filter((words) => words.length > 0);
}

/** Reads each line once. A pattern for whole documents would read to the end again for each one that is not closed. */
function withoutHereDocuments(text: string): string {
  const kept: string[] = [];
  let end: string | null = null;
  for (const line of text.split('\n')) {
    if (end === null) {
      end = HERE_DOCUMENT.exec(line)?.[1] ?? null;
      kept.push(line.replace(HERE_DOCUMENT, ''));
      continue;
    }
    const rest = line.trimStart();
    if (!rest.startsWith(end) || /\w/.test(rest.charAt(end.length))) continue;
    kept.push(rest.slice(end.length));
    end = null;
  }
  return kept.join('\n');
}

/** Commands that only prepare others or trim their output. */
const AROUND =
  /^(?:cd|export|set|source|sleep|true|echo|pushd|popd|head|tail|grep|tee|wc|sort|cat -|xargs)(?: |$)/;

/** The commands of a shell call as texts, without redirections and without commands that only prepare or trim. */
export function shellParts(call: ToolCall): string[] {
  const lines = textsOf(call).filter(([field]) => isCommandField(field));
  const commands = lines.flatMap(([, line]) => commandsOf(line));
  const texts = commands.map((words) =>
    words
      .filter(({ isTarget }) => !isTarget)
      .map(({ text }) => text)
      .join(' '),
  );
  const main = texts.filter((text) => !AROUND.test(text));
  return main.length > 0 ? main : texts;
}
