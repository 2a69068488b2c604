"""Certificates: what a run shows, packed so that anybody can reach its verdicts again without the target."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    archive="NoPackage read_package write_package",
    attestation="ENVELOPE attested",
    closeness="LINE RESULT RUN_INFO unlike",
    derivation="BY_NUMBERS Derivation NotCertifiable derived differing",
    json_schema="certificate_schemas",
    packing="Claim files_of",
    placement="placement_of unproved",
    records=(
        "AttestationRecord ChallengeRecord ExceptionRecord LevelRecord MeasuredRecord "
        "PackageRecord PlacementRecord ReportedRecord RowRecord StatementRecord SuiteRecord "
        "WaiverRecord"
    ),
    rows="most_open rows_of",
    reported="reported_in",
    signing="NoKey public_key_in signer_in",
    trial="trial_of",
    verifying="Verification verify",
    waivers="LONGEST WaiverError expired read_waivers",
)
