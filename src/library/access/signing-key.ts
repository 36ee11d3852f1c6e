import { createECDH, createHash, createPrivateKey, hkdfSync, sign } from 'node:crypto';

/** A public key of the curve P-256 as a JWK. */
export interface PublicSigningKey {
  /** Type of the key. */
  kty: 'EC';
  /** Its curve. */
  crv: 'P-256';
  /** X of the point, base64url. */
  x: string;
  /** Y of the point, base64url. */
  y: string;
  /** The thumbprint of the key (RFC 7638), base64url. */
  kid: string;
  /** The algorithm it is used with. */
  alg: 'ES256';
  /** What it is for. */
  use: 'sig';
}

/** A detached signature: of a payload that the verifier has. */
export interface DetachedSignature {
  /** The header that is signed, base64url. */
  protected: string;
  /** The signature, base64url. */
  signature: string;
}

/** A key that signs what this troupe says of itself. */
export interface SigningKey {
  /** For those who verify. */
  readonly publicKey: PublicSigningKey;
  /** Signs a payload as a JWS. `header` is added to `alg` and `kid`. */
  sign(payload: string, header: Readonly<Record<string, string>>): DetachedSignature;
}

/** Order of the group of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** 16 more than the order has: the remainder is then as good as uniform (FIPS 186-5, A.2.1). */
const SEED_BYTES = 48;

/** Derived from the store's secret, so it is the same in every process and after a restart, and never stored. */
export function createSigningKey(storeSecret: string, purpose: string): SigningKey {
  const seed = hkdfSync('sha256', storeSecret, '', `troupe ${purpose}`, SEED_BYTES);
  const scalar = (BigInt(`0x${Buffer.from(seed).toString('hex')}`) % (ORDER - 1n)) + 1n;
  const secret = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(secret);
  const point = pair.getPublicKey();
  const kind = { kty: 'EC', crv: 'P-256' } as const;
  const place = { x: base64url(point.subarray(1, 33)), y: base64url(point.subarray(33)) };
  const key = createPrivateKey({ key: { ...kind, ...place, d: base64url(secret) }, format: 'jwk' });
  const { crv, kty } = kind;
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv, kty, ...place }))
    .digest('base64url');
  return {
    publicKey: { ...kind, ...place, kid, alg: 'ES256', use: 'sig' },
    sign(payload, header) {
      const shown = base64url(JSON.stringify({ alg: 'ES256', kid, ...header }));
      const signed = Buffer.from(`${shown}.${base64url(payload)}`);
      const signature = sign('sha256', signed, { key, dsaEncoding: 'ieee-p1363' });
      return { protected: shown, signature: base64url(signature) };
    },
  };
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64url');
}
