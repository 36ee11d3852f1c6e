import { isObject, jsonText } from './shape.ts';
import type { JsonObject } from './shape.ts';

/** A call's arguments as the JSON text of an object; every provider demands one. Valid text keeps its bytes. */
export function argumentsText(args: unknown): { text: string; repaired: boolean } {
  if (isObject(args)) return objectText(args);
  if (args == null) return { text: '{}', repaired: true };
  if (typeof args !== 'string') return { text: JSON.stringify({ _raw: jsonText(args) }), repaired: true };
  if (args.trim() === '') return { text: '{}', repaired: true };
  if (isObjectText(args)) return { text: args, repaired: false };
  return { text: JSON.stringify({ _raw: args }), repaired: true };
}

function objectText(args: JsonObject): { text: string; repaired: boolean } {
  const text = jsonText(args);
  return text.startsWith('{') ? { text, repaired: false } : { text: '{}', repaired: true };
}

function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    // Broken arguments are an expected outcome: models do write them.
    return false;
  }
}
