import type { ToolCall } from '../../events/index.ts';
import { asPath } from './find-words.ts';

export interface Files {
  read: string[];
  modified: string[];
}

const WRITES =
  /(?:^|[_-])(?:write|edit|multi_?edit|patch|apply|create|str_?replace|replace|insert|append|save|delete|remove|rename|move|copy|upload)|(?:Write|Edit|Patch|Create|Replace|Delete|Rename|Move)/;
const SHELLS =
  /(?:^|[_-])(?:bash|sh|shell|exec|execute|terminal|command|run|cmd|powershell)(?:$|[_-])|Bash|Shell/i;
/** Read like this, a tool that writes files may still name one that it only reads. */
const READ_FIELD = /^(?:source|src|from|input|cwd|dir|directory|workdir|root)$/i;
const PATH_FIELD =
  /^(?:.*_)?(?:path|paths|file|files|file_?name|target|destination|dest|to|uri)$|(?:Path|File|FileName|Paths|Files)$/i;
const SHELL_FIELD = /^(?:command|cmd|script|code|commands|input)$/i;
const PATCH_FIELD = /^(?:patch|diff|input|patchText|changes)$/i;

const MAX_COMMAND = 20_000;
const MAX_DEPTH = 4;
const CHANGING_COMMAND =
  /^(?:sudo )?(?:rm|mv|cp|touch|mkdir|tee|truncate|chmod|ln|sed -i|perl -\w*i|git (?:mv|rm|checkout|restore))\b/;
const PATCHED_FILE = /^(?:\*\*\* (?:Update|Add|Delete|Move to)(?: File)?: |\+\+\+ (?:b\/)?)(\S{1,256})/;

/** The files that a call reads or changes, as its name and arguments tell. */
export function filesOf({ name, args }: ToolCall): Files {
  const files: Files = { read: [], modified: [] };
  const fields = parsed(args);
  if (fields === null) return files;
  const writes = WRITES.test(name);
  const isShell = SHELLS.test(name);
  for (const [field, value] of fields) {
    if (isShell && SHELL_FIELD.test(field)) ofCommand(value.slice(0, MAX_COMMAND), files);
    else if (writes && PATCH_FIELD.test(field) && value.includes('\n'))
      for (const file of patched(value)) files.modified.push(file);
    else if (isPathValue(field, value)) {
      (writes && !READ_FIELD.test(field) ? files.modified : files.read).push(value);
    }
  }
  return files;
}

/** The texts among the arguments with the name of their field, lists under the name of the list. */
function parsed(args: string): [field: string, value: string][] | null {
  let root: unknown;
  try {
    root = JSON.parse(args);
  } catch {
    // The model wrote no JSON; there is nothing to be told of it.
    return null;
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

/** A field that is called a path may hold any; any other field only what cannot be anything else. */
function isPathValue(field: string, value: string): boolean {
  if (value.length > 256 || value.length < 2 || /[\n"<>|*?{}$]/.test(value)) return false;
  if (PATH_FIELD.test(field))
    return /[/\\.]/.test(value) && /[\p{L}\p{N}]/u.test(value) && !value.includes('://');
  return /[/\\]/.test(value) && !/\s/.test(value) && asPath(value) === value;
}

/** Each part of a command line is told by its first word, and whatever is written to with `>` has changed. */
function ofCommand(command: string, files: Files): void {
  for (const part of command.split(/&&|\|\||[;|\n]/)) {
    const changes = CHANGING_COMMAND.test(part.trim());
    const words = part.match(/>{1,2}|[^\s"'`<>()]+/g) ?? [];
    words.forEach((word, index) => {
      const path = asPath(word);
      if (path === null || word.startsWith('-')) return;
      const written = words[index - 1]?.startsWith('>') ?? false;
      (changes || written ? files.modified : files.read).push(path);
    });
  }
}

function patched(patch: string): string[] {
  return patch.split('\n').flatMap((line) => {
    const path = PATCHED_FILE.exec(line)?.[1];
    return path === undefined || path === '/dev/null' ? [] : [path];
  });
}
