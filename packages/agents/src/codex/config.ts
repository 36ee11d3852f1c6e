import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findPeer } from '../programs.ts';

export const NAME = 'codex';

export type Sandbox = 'read-only' | 'workspace-write' | 'danger-full-access';

export interface CodexSettings {
  /** Root of the CLI's state, with one directory per configuration. */
  home: string;
  /** Working directory of the CLI. Default: an empty directory for each session. */
  cwd?: string;
  /** Environment variables of the CLI besides PATH. */
  env: Readonly<Record<string, string>>;
  /** Default: OpenAI's if there is a key, else that of the CLI's own login. */
  baseUrl?: string;
  /** Without a key, the CLI's own login is used. */
  apiKey?: string;
  /** The CLI's own tools that may be used. */
  builtinTools: readonly 'shell'[];
  /** Access of its own tools to files. */
  sandbox: Sandbox;
}

const KEY_VARIABLE = 'TROUPE_CODEX_KEY';
const OPENAI_URL = 'https://api.openai.com/v1';
const OFF = [
  'apps',
  'goals',
  'hooks',
  'image_generation',
  'plugins',
  'remote_plugin',
  'skill_search',
  'sleep_tool',
  'tool_suggest',
  // Otherwise the CLI retries forever if a server does not answer.
  'unbounded_connection_retries',
  'view_image',
];

/** Path of CODEX_HOME. Each combination of settings has its own, because config.toml differs. */
export function codexHome({ home, baseUrl, apiKey, builtinTools }: CodexSettings): string {
  const parts = JSON.stringify([baseUrl ?? null, apiKey !== undefined, builtinTools]);
  return join(home, `codex-${createHash('sha256').update(parts).digest('hex').slice(0, 12)}`);
}

/** Writes CODEX_HOME anew, keeping its sessions. Returns its path. */
export function writeHome(settings: CodexSettings): string {
  const dir = codexHome(settings);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = join(dir, 'config.toml');
  const text = configToml(settings);
  // Not rewritten without need, because another process may be reading it.
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text, { mode: 0o600 });
  if (settings.apiKey === undefined && settings.baseUrl === undefined) linkLogin(join(dir, 'auth.json'));
  return dir;
}

/** A link to the user's own login, because tokens are renewed in place and a copy would become stale. */
function linkLogin(link: string): void {
  const login = join(process.env['CODEX_HOME'] ?? join(homedir(), '.codex'), 'auth.json');
  rmSync(link, { force: true });
  if (existsSync(login)) symlinkSync(login, link);
}

/** The whole environment of the CLI. */
export function codexEnv({ env, apiKey }: CodexSettings, dir: string): Record<string, string> {
  const { PATH = '' } = process.env;
  return {
    ...env,
    PATH,
    HOME: dir,
    CODEX_HOME: dir,
    ...(apiKey !== undefined && { [KEY_VARIABLE]: apiKey }),
  };
}

/** The configuration: only the conversation goes to the model, nothing else is fetched or reported, failures come at once. */
function configToml({ baseUrl, apiKey, builtinTools }: CodexSettings): string {
  const shell = builtinTools.includes('shell');
  const custom = baseUrl !== undefined || apiKey !== undefined;
  const provider = [
    '[model_providers.troupe]',
    'name = "troupe"',
    `base_url = ${JSON.stringify((baseUrl ?? OPENAI_URL).replace(/(?<!\/)\/+$/, ''))}`,
    'wire_api = "responses"',
    ...(apiKey === undefined ? [] : [`env_key = "${KEY_VARIABLE}"`]),
    'request_max_retries = 0',
    'stream_max_retries = 0',
  ];
  return [
    ...(custom ? ['model_provider = "troupe"'] : []),
    'check_for_update_on_startup = false',
    'project_doc_max_bytes = 0',
    'include_permissions_instructions = false',
    'include_environment_context = false',
    'include_apps_instructions = false',
    'include_collaboration_mode_instructions = false',
    'web_search = "disabled"',
    // Seconds until a thread without listeners is dropped from memory.
    'thread_unload_delay_secs = 1',
    ...(custom ? provider : []),
    '[agents]',
    'enabled = false',
    '[tools]',
    'experimental_request_user_input = { enabled = false }',
    'update_plan = { enabled = false }',
    '[analytics]',
    'enabled = false',
    '[otel]',
    'exporter = "none"',
    '[skills.bundled]',
    'enabled = false',
    '[shell_environment_policy]',
    'inherit = "all"',
    `exclude = ["${KEY_VARIABLE}"]`,
    '[features]',
    ...OFF.map((name) => `${name} = false`),
    `shell_tool = ${shell}`,
    `unified_exec = ${shell}`,
    '',
  ].join('\n');
}

export interface Codex {
  version: string;
  command: string;
  /** Arguments before the CLI's own. */
  args: string[];
}

/** The installed Codex CLI. Throws `provider_unusable` if it is missing or too old. */
export function findCodex(env = process.env): Codex {
  const { dir, version } = findPeer('codex', env);
  const native = findNative(dir);
  // The npm script starts the same program, with one more process in between.
  return native
    ? { version, command: native, args: [] }
    : { version, command: process.execPath, args: [join(dir, 'bin', 'codex.js')] };
}

/** The program comes in one package per platform, in a folder named after the compiler's target. */
function findNative(dir: string): string | null {
  const name = `codex-${process.platform}-${process.arch}`;
  const file = process.platform === 'win32' ? 'codex.exe' : 'codex';
  for (const at of [join(dirname(dir), name), join(dir, 'node_modules', '@openai', name)]) {
    const vendor = join(at, 'vendor');
    if (!existsSync(vendor)) continue;
    for (const target of readdirSync(vendor)) {
      const path = join(vendor, target, 'bin', file);
      if (existsSync(path)) return path;
    }
  }
  return null;
}
