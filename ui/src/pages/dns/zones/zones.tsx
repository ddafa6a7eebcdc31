export default function Zones() {
  return null
}
