import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';
import * as z from 'zod';
import { canonicalJson, TroupeError } from '../troupe.ts';

/** A public key as a JSON Web Key. */
export interface CardKey {
  /** Its kind. */
  kty: 'EC' | 'RSA' | 'OKP';
  /** Its id, if it has one. */
  kid?: string | undefined;
}

/** How a signature of each algorithm is verified. A key fits only the algorithms of its kind. */
const ALGORITHMS: Readonly<Record<string, { type: string; curve?: string; hash: string | null }>> = {
  ES256: { type: 'ec', curve: 'prime256v1', hash: 'sha256' },
  ES384: { type: 'ec', curve: 'secp384r1', hash: 'sha384' },
  RS256: { type: 'rsa', hash: 'sha256' },
  EdDSA: { type: 'ed25519', hash: null },
};

const Header = z.object({ alg: z.string(), kid: z.string().optional() });
const Signatures = z.array(z.object({ protected: z.string(), signature: z.string() })).max(20);

function keyOf(jwk: object): KeyObject | null {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return null; // The shape of a key says nothing about its numbers.
  }
}

/** Throws `provider_unverified` unless one of the keys has signed the card. */
export function verifyCard(card: unknown, keys: readonly CardKey[], at: string): void {
  const { signatures, ...signed } = Object(card) as Record<string, unknown>;
  const given = Signatures.safeParse(signatures ?? []);
  const list = given.success ? given.data : [];
  // Signers leave out empty values, whether or not they write them.
  const payloads = [signed, withoutEmpty(signed)].map(canonicalJson);
  const isSigned = list.some((each) =>
    payloads.some((payload) => keys.some((key) => isBy(each, payload, key))),
  );
  if (isSigned) return;
  const why = list.length === 0 ? 'is not signed' : 'is not signed by a key of cardKeys';
  throw new TroupeError('provider_unverified', `the agent card at ${at} ${why}: nothing is sent there`);
}

function isBy(
  { protected: header, signature }: z.infer<typeof Signatures>[number],
  payload: string,
  jwk: CardKey,
): boolean {
  const named = headerIn(header);
  const algorithm = named && ALGORITHMS[named.alg];
  const key = keyOf(jwk);
  if (!algorithm || !key || key.asymmetricKeyType !== algorithm.type) return false;
  if (algorithm.curve !== undefined && key.asymmetricKeyDetails?.namedCurve !== algorithm.curve) return false;
  if (named.kid !== undefined && jwk.kid !== undefined && named.kid !== jwk.kid) return false;
  const data = Buffer.from(`${header}.${Buffer.from(payload).toString('base64url')}`);
  return verify(
    algorithm.hash,
    data,
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
}

function headerIn(text: string): z.infer<typeof Header> | null {
  try {
    const found = Header.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString()));
    return found.success ? found.data : null;
  } catch {
    return null; // Not JSON: no signature of ours.
  }
}

function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === null) return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) {
    const kept = value.map(withoutEmpty).filter((each) => each !== undefined);
    return kept.length > 0 ? kept : undefined;
  }
  const kept = Object.entries(value as object).flatMap(([name, each]) => {
    const left = withoutEmpty(each);
    return left === undefined ? [] : [[name, left] as const];
  });
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}
