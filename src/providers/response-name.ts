import type { ResponseName } from './provider.ts';

const MAX_CHARACTERS = 200;

/** What a vendor said, whatever it said: texts of a length, without what is never to be shown. */
export function soundName(name: ResponseName, secrets: readonly string[]): ResponseName | undefined {
  const model = soundText(name.model, secrets);
  const id = soundText(name.id, secrets);
  if (model === undefined && id === undefined) return undefined;
  return { ...(model !== undefined && { model }), ...(id !== undefined && { id }) };
}

function soundText(text: unknown, secrets: readonly string[]): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined;
  if (secrets.some((secret) => secret !== '' && text.includes(secret))) return undefined;
  return text.slice(0, MAX_CHARACTERS).toWellFormed();
}
