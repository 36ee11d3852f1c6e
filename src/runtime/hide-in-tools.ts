import type { Tool, ToolReturn } from '../tools/tool.ts';
import { credentialsIn } from './hide-secrets.ts';
import { keyNames, type ModelSettings } from './secret-names.ts';

/** Variables that hold secrets, by their names; those that say where one is do not. */
const SECRET = /KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|NSEC|BUNKER/i;
const PLACE = /(?:FILE|PATH|DIR|SOCK|URL|CREDENTIALS)$/i;
/** Shorter values are placeholders such as `not-needed`, which texts may hold. */
const LEAST_SECRET = 12;

/**
 * What tools answer and how they fail is stored, and is in every prompt from then on: no secret of this process gets there
 * because a tool printed its environment or the request that it failed with. In the place of a value stands its name.
 */
export function hideInTools(
  definition: ModelSettings,
  env: Readonly<Record<string, string | undefined>>,
  urls: readonly (string | undefined)[],
): (tool: Tool) => Tool {
  const named = new Set(keyNames(definition));
  const secrets = Object.entries(env).flatMap(([name, value = '']) => {
    const isSecret = named.has(name) || (SECRET.test(name) && !PLACE.test(name));
    const found = isSecret ? [value.trim(), ...credentialsIn(value)] : credentialsIn(value);
    return found.map((secret) => [name, secret] as const);
  });
  const ofServices = urls.flatMap((url = '') =>
    credentialsIn(url).map((secret) => ['password', secret] as const),
  );
  const hide = hideValues([...secrets, ...ofServices]);
  return (tool) => ({ ...tool, run: (args, context) => hidden(hide, () => tool.run(args, context)) });
}

function hideValues(secrets: readonly (readonly [name: string, secret: string])[]): (text: string) => string {
  const forms = secrets
    .filter(([, secret]) => secret.length >= LEAST_SECRET)
    // As it is, and as it stands in JSON.
    .flatMap(([name, secret]) =>
      [...new Set([secret, JSON.stringify(secret).slice(1, -1)])].map((form) => [name, form] as const),
    )
    // What contains another goes first, or a part of it would be left.
    .sort(([, a], [, b]) => b.length - a.length);
  return (text) => forms.reduce((kept, [name, form]) => kept.replaceAll(form, () => `[${name}]`), text);
}

async function hidden(
  hide: (text: string) => string,
  run: () => ReturnType<Tool['run']>,
): Promise<ToolReturn> {
  try {
    const returned = await run();
    if (typeof returned === 'string') return hide(returned);
    // Tools are also written in JavaScript: what else there is, `runTool` makes a text of, or refuses.
    if (typeof returned !== 'object' || returned === null) return returned;
    if (typeof returned.text === 'string') return { ...returned, text: hide(returned.text) };
    return hide(JSON.stringify(returned) ?? '');
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
    const shown = hide(message);
    if (shown === message) throw thrown;
    throw new Error(shown);
  }
}
